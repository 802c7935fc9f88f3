import { Label } from '@patternfly/react-core';

import { useText } from '../text';
import type { Severity } from './findings';

/** Says in the list of environments that something in one is not as it should be. */
export function FindingBadge({ found }: { found: { severity: Severity; count: number } | undefined }) {
  const words = useText().findings;
  if (!found) return null;
  return (
    <Label isCompact status={found.severity === 'critical' ? 'danger' : 'warning'}>
      {words.count(found.count)}
    </Label>
  );
}

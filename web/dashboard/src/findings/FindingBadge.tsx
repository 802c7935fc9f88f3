import { Label } from '@patternfly/react-core';

import { useText } from '../text';
import type { Severity } from './findings';

/** Marks an environment with findings in the list of environments. */
export function FindingBadge({ found }: { found: { severity: Severity; count: number } | undefined }) {
  const words = useText().findings;
  if (!found) return null;
  return (
    <Label isCompact status={found.severity === 'critical' ? 'danger' : 'warning'}>
      {words.count(found.count)}
    </Label>
  );
}

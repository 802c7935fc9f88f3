import { Content, ExpandableSection } from '@patternfly/react-core';
import { useState } from 'react';

import type { Schema } from '../api/client';
import { useText } from '../text';
import { differencesOf, type Difference } from './differences';
import { DifferenceText } from './DifferenceText';

/** A draft's additions, changes and removals, object by object; for changes the former and the new values. */
export function Changes({ changes }: { changes: Schema<'Change'>[] }) {
  const words = useText().draft;
  const [open, setOpen] = useState(false);
  const names = new Map(changes.map((change) => [change.id ?? '', change.name ?? '']));
  return (
    <ExpandableSection toggleText={words.which(changes.length)} isExpanded={open} onToggle={(_event, next) => setOpen(next)}>
      <Content component="ul">
        {changes.map((change, i) => (
          <Content component="li" key={i} className="burano-breaks">
            {words.kinds[change.change ?? 'changed']}: {change.name || change.type || change.path || words.environment}
            {change.type && change.name && ` (${change.type.split(/[/@]/)[0]})`}
            {(change.values ?? []).length > 0 && (
              <Content component="ul">
                {change.values?.flatMap((value) => valuesOf(value, names)).map((difference) => (
                  <Content component="li" key={difference.path}>
                    <DifferenceText difference={difference} />
                  </Content>
                ))}
              </Content>
            )}
          </Content>
        ))}
      </Content>
    </ExpandableSection>
  );
}

/** The differences in a property. A secret, whose values are masked alike, is listed if it differs. */
function valuesOf({ name, before, after }: NonNullable<Schema<'Change'>['values']>[number], names: Map<string, string>): Difference[] {
  const found = differencesOf(name, before, after, names);
  return found.length > 0 ? found : [{ path: name, before: null, after: null, secret: true }];
}

import { Content, ExpandableSection } from '@patternfly/react-core';
import { useState } from 'react';

import type { Schema } from '../api/client';
import { useText } from '../text';
import { named, shortValue } from './values';

/** What a draft adds, changes and removes, object by object; of what it changes the former values and those to be. */
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
                {change.values?.map((value) => (
                  <Content component="li" key={value.name}>
                    <Value name={value.name} before={shortValue(named(value.before, names))} after={shortValue(named(value.after, names))} />
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

function Value({ name, before, after }: { name: string; before: string | null; after: string | null }) {
  const words = useText().draft;
  if (before === after) return <>{words.hiddenValue(name)}</>; // a secret: what it was and what it would be are masked alike
  return (
    <>
      {name}: <del>{before ?? words.noValue}</del> <ins>{after ?? words.noValue}</ins>
    </>
  );
}

import { Content, ExpandableSection, Label } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import type { Schema } from '../api/client';
import { environmentQuery } from '../environments/environments';
import { namesOf } from '../environments/objects';
import { useText } from '../text';
import { differencesOf, type Difference } from './differences';
import { DifferenceText } from './DifferenceText';

interface Props {
  environment: string;
  changes: Schema<'Change'>[];
  /** They are shown at once. */
  isOpen?: boolean;
}

/** A draft's additions, changes and removals, object by object; for changes the former and the new values. */
export function Changes({ environment, changes, isOpen = false }: Props) {
  const words = useText().draft;
  const [open, setOpen] = useState(isOpen);
  const deployed = useQuery(environmentQuery(environment)).data?.services;
  const names = namesOf(deployed);
  for (const one of changes) {
    if (one.id && one.name) names.set(one.id, one.name);
    for (const [id, name] of Object.entries(one.names ?? {})) if (!names.has(id)) names.set(id, name);
  }
  return (
    <ExpandableSection toggleText={words.which(changes.length)} isExpanded={open} onToggle={(_event, next) => setOpen(next)}>
      <Content component="ul">
        {changes.map((change, i) => (
          <Content component="li" key={i} className="burano-breaks">
            {words.kinds[change.change ?? 'changed']}: {names.get(change.id ?? '') || change.type || change.path || words.environment}
            {change.type && names.has(change.id ?? '') && ` (${change.type.split(/[/@]/)[0]})`}
            {(change.values ?? []).length > 0 && (
              <Content component="ul">
                {change.values?.flatMap((value) =>
                  valuesOf(value, names).map((difference, place) => (
                    <Content component="li" key={difference.path}>
                      <DifferenceText difference={difference} />
                      {value.effect && place === 0 && (
                        <>
                          {' '}
                          <Label isCompact color={value.effect === 'loses' || value.effect === 'refused' ? 'orange' : 'grey'}>
                            {words.effects[value.effect]}
                          </Label>
                          {value.effect_text && ` ${value.effect_text}`}
                        </>
                      )}
                    </Content>
                  )),
                )}
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

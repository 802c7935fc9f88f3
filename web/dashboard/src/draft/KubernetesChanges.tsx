import { Content, ExpandableSection } from '@patternfly/react-core';
import { useState } from 'react';

import type { Schema } from '../api/client';
import { useText } from '../text';
import { fieldsOf } from './differences';
import { DifferenceText } from './DifferenceText';

/** The number of an object's fields that are shown at first. */
const most = 5;

/**
 * A draft's additions, changes and removals in clusters through Helm releases, object by object; long differences are
 * folded.
 */
export function KubernetesChanges({ changes }: { changes: Schema<'KubernetesChange'>[] }) {
  const words = useText().draft;
  const [open, setOpen] = useState(false);
  return (
    <ExpandableSection toggleText={words.inKubernetes(changes.length)} isExpanded={open} onToggle={(_event, next) => setOpen(next)}>
      <Content component="ul">
        {changes.map((change) => (
          <Content component="li" key={[change.object_id, change.kind, change.namespace, change.name].join('/')} className="burano-breaks">
            {words.kinds[change.change]}: {change.kind} {change.namespace && `${change.namespace}/`}
            {change.name} <small>{words.ofRelease(change.object)}</small>
            <Fields change={change} />
          </Content>
        ))}
      </Content>
    </ExpandableSection>
  );
}

function Fields({ change }: { change: Schema<'KubernetesChange'> }) {
  const words = useText().draft;
  const [open, setOpen] = useState(false);
  const fields = change.fields.flatMap(fieldsOf);
  const shown = open ? fields : fields.slice(0, most);
  if (fields.length === 0 && change.more === 0) return null;
  return (
    <>
      <Content component="ul">
        {shown.map((field, i) => (
          <Content component="li" key={i}>
            <DifferenceText difference={field} />
          </Content>
        ))}
        {change.more > 0 && (open || fields.length <= most) && <Content component="li">{words.moreFields(change.more)}</Content>}
      </Content>
      {fields.length > most && (
        <ExpandableSection toggleText={open ? words.fold : words.unfold(fields.length - most)} isExpanded={open} onToggle={(_event, next) => setOpen(next)}>
          {null}
        </ExpandableSection>
      )}
    </>
  );
}

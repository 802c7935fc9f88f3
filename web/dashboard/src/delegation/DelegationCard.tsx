import { Alert, Button, Content, Label, LabelGroup } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { showTime } from '../api/time';
import { Confirm } from '../shell/Confirm';
import { Facts, FactsCard } from '../shell/FactsCard';
import { useLanguage } from '../text';
import { delegationQuery, expiry, revokeDelegation, type Delegation } from './delegation';
import { GiveDialog } from './GiveDialog';

/** The user in whose name an environment's tasks run when a script starts them. */
export function DelegationCard({ environment }: { environment: string }) {
  const { text } = useLanguage();
  const words = text.delegation;
  const client = useQueryClient();
  const asked = useQuery(delegationQuery(environment));
  const [dialog, setDialog] = useState<'give' | 'revoke' | null>(null);
  const done = () => {
    setDialog(null);
    void client.invalidateQueries({ queryKey: delegationQuery(environment).queryKey });
  };
  const give = (label: string) => (
    <Button variant="secondary" onClick={() => setDialog('give')}>
      {label}
    </Button>
  );
  const revoke = (
    <Button variant="danger" onClick={() => setDialog('revoke')}>
      {words.revoke}
    </Button>
  );
  return (
    <>
      <FactsCard
        title={words.title}
        what={words.what}
        asked={asked}
        facts={(delegation) => (delegation ? <Shown delegation={delegation} /> : <Content component="p">{words.none}</Content>)}
        commands={(delegation) => (delegation ? [give(words.renew), revoke] : [give(words.give)])}
      />
      {dialog === 'give' && <GiveDialog environment={environment} onDone={done} onClose={() => setDialog(null)} />}
      {dialog === 'revoke' && (
        <Confirm
          title={words.revokeTitle}
          what={words.revokeWhat}
          action={words.revoke}
          send={() => revokeDelegation(environment)}
          onDone={done}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  );
}

function Shown({ delegation }: { delegation: Delegation }) {
  const { text, language } = useLanguage();
  const words = text.delegation;
  const ends = expiry(delegation);
  return (
    <>
      {(ends === 'soon' || ends === 'over') && (
        <Alert variant={ends === 'over' ? 'danger' : 'warning'} isInline isPlain title={ends === 'over' ? words.over : words.soon} />
      )}
      <Facts
        rows={[
          [words.owner, delegation.user_name || delegation.user_id],
          [words.kind, delegation.kind && words.kinds[delegation.kind]],
          [
            words.roles,
            <LabelGroup key="roles" aria-label={words.roles}>
              {(delegation.roles ?? []).map((role) => (
                <Label key={role} isCompact>
                  {role}
                </Label>
              ))}
            </LabelGroup>,
          ],
          [words.given, showTime(delegation.created, language)],
          [words.expires, delegation.expires ? showTime(delegation.expires, language) : text.shell.never],
        ]}
      />
    </>
  );
}

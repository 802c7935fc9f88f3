import {
  Alert,
  Button,
  Card,
  CardBody,
  CardFooter,
  CardTitle,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Flex,
  FlexItem,
  Label,
  LabelGroup,
  Skeleton,
} from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';

import { showTime } from '../api/time';
import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { delegationQuery, expiry, revokeDelegation, type Delegation } from './delegation';
import { GiveDialog } from './GiveDialog';

/** Who stands behind an environment's tasks when a script starts them. */
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
  return (
    <Card>
      <CardTitle component="h2">{words.title}</CardTitle>
      <CardBody>
        <Content component="p">{words.what}</Content>
        {asked.error && <Failure error={asked.error} onRetry={() => void asked.refetch()} />}
        {asked.isPending && <Skeleton height="4rem" screenreaderText={text.shell.loading} />}
        {asked.data === null && <Content component="p">{words.none}</Content>}
        {asked.data && <Shown delegation={asked.data} />}
      </CardBody>
      {asked.data !== undefined && (
        <CardFooter>
          <Flex>
            <FlexItem>
              <Button variant="secondary" onClick={() => setDialog('give')}>
                {asked.data ? words.renew : words.give}
              </Button>
            </FlexItem>
            {asked.data && (
              <FlexItem>
                <Button variant="danger" onClick={() => setDialog('revoke')}>
                  {words.revoke}
                </Button>
              </FlexItem>
            )}
          </Flex>
        </CardFooter>
      )}
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
    </Card>
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
      <DescriptionList isCompact isHorizontal className="burano-spaced">
        <Term name={words.owner}>{delegation.user_name || delegation.user_id}</Term>
        <Term name={words.kind}>{delegation.kind && words.kinds[delegation.kind]}</Term>
        <Term name={words.roles}>
          <LabelGroup aria-label={words.roles}>
            {(delegation.roles ?? []).map((role) => (
              <Label key={role} isCompact>
                {role}
              </Label>
            ))}
          </LabelGroup>
        </Term>
        <Term name={words.given}>{showTime(delegation.created, language)}</Term>
        <Term name={words.expires}>{delegation.expires ? showTime(delegation.expires, language) : text.shell.never}</Term>
      </DescriptionList>
    </>
  );
}

const Term = ({ name, children }: { name: string; children: ReactNode }) => (
  <DescriptionListGroup>
    <DescriptionListTerm>{name}</DescriptionListTerm>
    <DescriptionListDescription className="burano-breaks">{children}</DescriptionListDescription>
  </DescriptionListGroup>
);

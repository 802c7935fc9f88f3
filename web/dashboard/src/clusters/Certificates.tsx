import { Alert, Button, Card, CardBody, CardFooter, CardTitle, Content, Flex, FlexItem, Label } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useState } from 'react';

import { ActionDialog } from '../actions/ActionDialog';
import { actionsNamed, type Action } from '../actions/actions';
import { showTime } from '../api/time';
import type { ObjectModel } from '../environments/environments';
import { useSession } from '../session/session';
import { useLanguage } from '../text';
import { daysLeft, shortened, urgency, type Certificate } from './certificates';
import type { Cluster } from './clusters';

/** The actions on certificates and keys that a cluster may offer, as they are listed here. */
const methods = ['renewCertificates', 'rotate', 'rotateCertificates', 'rotateKeys'] as const;

interface Props {
  environment: string;
  cluster: Cluster;
  object: ObjectModel | undefined;
  /** Something runs in the environment. */
  busy: boolean;
}

/** The ends of a cluster's certificates, and their renewal. */
export function Certificates({ environment, cluster, object, busy }: Props) {
  const { text, language } = useLanguage();
  const words = text.certificates;
  const [all, setAll] = useState(false);
  const [chosen, setChosen] = useState<Action | null>(null);
  const mayAct = useSession().rules?.includes('execute_action') ?? false;
  const list = cluster.certificates ?? [];
  const shown = all ? list : shortened(list);
  const offered = mayAct && object ? actionsNamed(object, methods) : [];
  return (
    <Card>
      <CardTitle component="h2">{words.title}</CardTitle>
      <CardBody>
        <Content component="p">{words.what}</Content>
        {cluster.rotation && (
          <Alert variant="warning" isInline title={words.rotates} className="burano-spaced">
            {words.rotatesWhat((cluster.rotation.parts ?? []).join(', '), showTime(cluster.rotation.began, language))}
          </Alert>
        )}
        {list.length === 0 ? (
          <Content component="p">{words.none}</Content>
        ) : (
          <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-md">
            <Thead>
              <Tr>
                <Th>{words.of}</Th>
                <Th>{words.certificate}</Th>
                <Th>{words.ends}</Th>
              </Tr>
            </Thead>
            <Tbody>
              {shown.map((one) => (
                <Tr key={`${one.node}/${one.name}`}>
                  <Td dataLabel={words.of} className="burano-breaks">
                    {one.node || words.authority}
                  </Td>
                  <Td dataLabel={words.certificate} className="burano-breaks">
                    {one.name}
                  </Td>
                  <Td dataLabel={words.ends}>
                    {showTime(one.expires, language)} <Left certificate={one} />
                  </Td>
                </Tr>
              ))}
            </Tbody>
          </Table>
        )}
        {shown.length < list.length && (
          <Button variant="link" isInline onClick={() => setAll(true)}>
            {words.showAll(list.length)}
          </Button>
        )}
      </CardBody>
      {offered.length > 0 && (
        <CardFooter>
          <Flex>
            {offered.map((action) => (
              <FlexItem key={action.id}>
                <Button variant="secondary" onClick={() => setChosen(action)} isDisabled={busy}>
                  {action.title}
                </Button>
              </FlexItem>
            ))}
          </Flex>
          {busy && <Content component="small">{text.actions.busy}</Content>}
        </CardFooter>
      )}
      {chosen && object && <ActionDialog environment={environment} object={object} action={chosen} onClose={() => setChosen(null)} />}
    </Card>
  );
}

function Left({ certificate }: { certificate: Certificate }) {
  const words = useLanguage().text.certificates;
  const status = { over: 'danger', soon: 'warning', later: undefined } as const;
  const when = urgency(certificate);
  return (
    <Label isCompact status={status[when]}>
      {when === 'over' ? words.over : words.days(daysLeft(certificate))}
    </Label>
  );
}

import { Button, Card, CardBody, CardHeader, CardTitle, Content, EmptyState, EmptyStateBody } from '@patternfly/react-core';
import { CameraIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { actionsOf } from '../actions/actions';
import { showBytes } from '../api/bytes';
import { showAge, showTime } from '../api/time';
import type { ObjectModel } from '../environments/environments';
import { HelpLink } from '../help/HelpLink';
import { useSession } from '../session/session';
import { Confirm } from '../shell/Confirm';
import { Loaded } from '../shell/Loaded';
import { RowActions } from '../shell/RowActions';
import { useLanguage } from '../text';
import { RestoreDialog } from './RestoreDialog';
import { contentOf, deleteSnapshot, everyHours, snapshotsQuery, type Snapshot } from './snapshots';
import { TakeDialog } from './TakeDialog';

interface Props {
  environment: string;
  /** The cluster's id, and its model where it is known. */
  cluster: string;
  object: ObjectModel | undefined;
  /** Something runs in the environment. */
  busy: boolean;
}

type Dialog = { kind: 'take' } | { kind: 'restore' | 'delete'; snapshot: Snapshot };

/** A cluster's snapshots, and their commands. */
export function Snapshots({ environment, cluster, object, busy }: Props) {
  const { text, language } = useLanguage();
  const words = text.snapshots;
  const client = useQueryClient();
  const asked = useQuery(snapshotsQuery(environment, cluster));
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const rules = useSession().rules ?? [];
  const hours = everyHours(object);
  const restore = object && actionsOf(object).find((action) => action.method === 'restore');
  const close = () => setDialog(null);
  const changed = () => {
    close();
    void client.invalidateQueries({ queryKey: snapshotsQuery(environment, cluster).queryKey });
  };
  return (
    <Card>
      <CardHeader
        actions={{
          hasNoOffset: true,
          actions: rules.includes('execute_action') && (
            <Button variant="secondary" onClick={() => setDialog({ kind: 'take' })}>
              {words.take}
            </Button>
          ),
        }}
      >
        <CardTitle component="h2">{words.title}</CardTitle>
      </CardHeader>
      <CardBody>
        <Content component="p">
          {words.what} {hours === null ? words.never : words.every(hours)} <HelpLink page="recovery" section="snapshots-and-the-worst-day" />
        </Content>
        <Loaded query={asked}>
          {(list) =>
            list.length === 0 ? (
              <EmptyState titleText={words.none} icon={CameraIcon} headingLevel="h3" variant="sm">
                <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
              </EmptyState>
            ) : (
              <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-lg">
                <Thead>
                  <Tr>
                    <Th>{words.taken}</Th>
                    <Th>{words.why}</Th>
                    <Th>{words.size}</Th>
                    <Th>{words.verified}</Th>
                    <Th>{words.kept}</Th>
                    <Th screenReaderText={text.actions.title} />
                  </Tr>
                </Thead>
                <Tbody>
                  {list.map((one) => (
                    <Tr key={one.id}>
                      <Td dataLabel={words.taken} title={showAge(one.created, language)}>
                        {showTime(one.created, language)}
                      </Td>
                      <Td dataLabel={words.why} className="burano-breaks">
                        {words.kinds[one.kind]}
                        {one.reason && <Content component="small">{one.reason}</Content>}
                      </Td>
                      <Td dataLabel={words.size}>
                        {showBytes(one.size, language)}
                        <Content component="small">{words.stored(showBytes(one.stored, language))}</Content>
                      </Td>
                      <Td dataLabel={words.verified}>{showTime(one.verified, language)}</Td>
                      <Td dataLabel={words.kept} className="burano-breaks">
                        {words.keeps[one.kind]}
                        {one.container && <Content component="small">{one.container}</Content>}
                      </Td>
                      <Td isActionCell>
                        <RowActions
                          of={showTime(one.created, language)}
                          items={[
                            ...(rules.includes('get_kubeconfig') ? [{ title: words.download, to: contentOf(one.id), download: `${one.cluster_name}-${one.id}.db` }] : []),
                            ...(restore && rules.includes('execute_action')
                              ? [{ title: words.restore, isDisabled: busy, onClick: () => setDialog({ kind: 'restore', snapshot: one }) }]
                              : []),
                            ...(rules.includes('update_environment') ? [{ title: words.delete, onClick: () => setDialog({ kind: 'delete', snapshot: one }) }] : []),
                          ]}
                        />
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )
          }
        </Loaded>
      </CardBody>
      {dialog?.kind === 'take' && <TakeDialog environment={environment} cluster={cluster} onDone={changed} onClose={close} />}
      {dialog?.kind === 'restore' && restore && (
        <RestoreDialog environment={environment} action={restore.id} snapshot={dialog.snapshot} onClose={close} />
      )}
      {dialog?.kind === 'delete' && (
        <Confirm
          title={words.deleteTitle}
          what={words.deleteWhat(showTime(dialog.snapshot.created, language))}
          action={words.delete}
          send={() => deleteSnapshot(dialog.snapshot.id)}
          onDone={changed}
          onClose={close}
        />
      )}
    </Card>
  );
}

import {
  Alert,
  Button,
  Card,
  CardBody,
  CardFooter,
  CardTitle,
  Checkbox,
  Content,
  Flex,
  FlexItem,
  FormSelect,
  FormSelectOption,
  List,
  ListItem,
  Skeleton,
} from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { ActionDialog } from '../actions/ActionDialog';
import { ActionRun } from '../actions/ActionRun';
import { actionsOf, callAction, type Action } from '../actions/actions';
import type { ObjectModel } from '../environments/environments';
import { useSession } from '../session/session';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { cloudQuery } from '../wizard/cloud';
import type { Cluster } from './clusters';
import { pauseUpgrade, planQuery, progressOf, upgradeImages, type Upgrade } from './upgrade';

interface Props {
  environment: string;
  cluster: string;
  status: Cluster;
  object: ObjectModel | undefined;
  /** Something runs in the environment. */
  busy: boolean;
}

/** Upgrades a cluster, after showing the plan, or shows the progress. */
export function UpgradeCard(props: Props) {
  const text = useText();
  const mayAct = useSession().rules?.includes('execute_action') ?? false;
  const action = props.object && actionsOf(props.object).find((one) => one.method === 'upgrade');
  const { upgrade } = props.status;
  if (!upgrade && (!mayAct || !action)) return null;
  return (
    <Card>
      <CardTitle component="h2">{text.upgrades.title}</CardTitle>
      {upgrade ? <UnderWay {...props} upgrade={upgrade} /> : action && <Planned {...props} action={action} />}
    </Card>
  );
}

function UnderWay({ environment, cluster, object, busy, upgrade }: Props & { upgrade: Upgrade }) {
  const text = useText();
  const words = text.upgrades;
  const [chosen, setChosen] = useState<Action | null>(null);
  const mayAct = useSession().rules?.includes('execute_action') ?? false;
  const pause = useMutation({ mutationFn: () => pauseUpgrade(environment, cluster) });
  const { done, all } = progressOf(upgrade);
  const offered = object ? ['upgrade', 'upgradeBack'].flatMap((method) => actionsOf(object).filter((one) => one.method === method)) : [];
  const titles: Record<string, string> = { upgrade: words.goOn, upgradeBack: words.back };
  return (
    <>
      <CardBody>
        <Alert variant={busy ? 'info' : 'warning'} isInline title={words.states[upgrade.state ?? 'running']} className="burano-spaced">
          {words.progress(upgrade.from ?? '', upgrade.kubernetes ?? '', done, all)}
        </Alert>
        <List isPlain>
          {(upgrade.nodes ?? []).map((node) => (
            <ListItem key={node.name} className="burano-breaks">
              {node.name}: {words.nodeStates[node.state ?? 'waiting']}
            </ListItem>
          ))}
        </List>
        {pause.error && <Failure error={pause.error} />}
        {pause.isSuccess && busy && <Content component="p">{words.pauses}</Content>}
      </CardBody>
      {mayAct && (
        <CardFooter>
          <Flex>
            {busy ? (
              <FlexItem>
                <Button variant="secondary" onClick={() => pause.mutate()} isDisabled={pause.isPending || upgrade.state !== 'running'}>
                  {words.pause}
                </Button>
              </FlexItem>
            ) : (
              offered.map((action) => (
                <FlexItem key={action.id}>
                  <Button variant="secondary" onClick={() => setChosen(action)}>
                    {titles[action.method]}
                  </Button>
                </FlexItem>
              ))
            )}
          </Flex>
        </CardFooter>
      )}
      {chosen && object && <ActionDialog environment={environment} object={object} action={chosen} onClose={() => setChosen(null)} />}
    </>
  );
}

function Planned({ environment, cluster, busy, action }: Props & { action: Action }) {
  const text = useText();
  const words = text.upgrades;
  const client = useQueryClient();
  const images = useQuery(cloudQuery('images'));
  const [image, setImage] = useState('');
  const [force, setForce] = useState(false);
  const plan = useQuery({ ...planQuery(environment, cluster, image), enabled: image !== '' });
  const begin = useMutation({
    mutationFn: () => callAction(environment, action.id, { image, force }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['environments'] }),
  });
  const problems = plan.data?.problems ?? [];
  const nodes = plan.data?.nodes ?? [];
  const stopped = problems.some((one) => one.grave) || (problems.length > 0 && !force);
  const offered = upgradeImages(images.data?.images ?? []);
  return (
    <>
      <CardBody>
        <Content component="p">{words.what}</Content>
        {images.error && <Failure error={images.error} />}
        <FormSelect value={image} onChange={(_event, value) => setImage(value)} aria-label={words.image}>
          <FormSelectOption value="" label={offered.length > 0 ? words.choose : words.noImages} />
          {offered.map((one) => (
            <FormSelectOption key={one.id} value={one.id} label={words.imageHolds(one.name ?? '', one.kubernetes ?? '')} />
          ))}
        </FormSelect>
        {image !== '' && plan.isFetching && <Skeleton height="6rem" screenreaderText={text.shell.loading} />}
        {plan.error && <Failure error={plan.error} />}
        {plan.data && nodes.length === 0 && <Content component="p">{words.nothing}</Content>}
        {nodes.length > 0 && (
          <>
            <Content component="p" className="burano-breaks">
              {words.about(Math.ceil((plan.data?.seconds ?? 0) / 60), plan.data?.measured ?? false)} {plan.data?.means}
            </Content>
            <Table aria-label={words.plan} variant="compact" gridBreakPoint="grid-md">
              <Thead>
                <Tr>
                  <Th>{words.turn}</Th>
                  <Th>{words.node}</Th>
                  <Th>{words.kubernetes}</Th>
                </Tr>
              </Thead>
              <Tbody>
                {nodes.map((node, i) => (
                  <Tr key={node.name}>
                    <Td dataLabel={words.turn}>{i + 1}</Td>
                    <Td dataLabel={words.node} className="burano-breaks">
                      {node.name}
                    </Td>
                    <Td dataLabel={words.kubernetes}>{node.kubernetes}</Td>
                  </Tr>
                ))}
              </Tbody>
            </Table>
          </>
        )}
        {problems.length > 0 && (
          <Alert variant={problems.some((one) => one.grave) ? 'danger' : 'warning'} isInline title={words.problems} className="burano-spaced">
            <List>
              {problems.map((one) => (
                <ListItem key={one.text} className="burano-breaks">
                  {one.text}
                </ListItem>
              ))}
            </List>
          </Alert>
        )}
        {problems.length > 0 && !problems.some((one) => one.grave) && (
          <Checkbox id="upgrade-force" label={words.force} isChecked={force} onChange={(_event, checked) => setForce(checked)} />
        )}
        {begin.error && <Failure error={begin.error} />}
        {begin.data && <ActionRun environment={environment} task={begin.data} />}
      </CardBody>
      {nodes.length > 0 && (
        <CardFooter>
          <Button onClick={() => begin.mutate()} isDisabled={busy || stopped || begin.isPending || plan.isFetching} isLoading={begin.isPending}>
            {words.begin}
          </Button>
          {busy && <Content component="small">{text.actions.busy}</Content>}
        </CardFooter>
      )}
    </>
  );
}

import { Content, Label, LabelGroup, Title } from '@patternfly/react-core';
import { BanIcon, CheckCircleIcon, ExclamationCircleIcon, LockIcon, QuestionCircleIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';

import { ActionMenu } from '../actions/ActionMenu';
import type { EnvironmentDetails, ObjectModel } from '../environments/environments';
import { useText } from '../text';
import { counted, deedsOf, showTaint, type Cluster, type Node } from './clusters';

interface Props {
  cluster: Cluster;
  /** The object with the actions on nodes; undefined while it is unknown. */
  object: ObjectModel | undefined;
  environment: EnvironmentDetails | undefined;
}

/** The servers of a cluster, and the commands for each. */
export function Nodes({ cluster, object, environment }: Props) {
  const words = useText().clusters;
  const { nodes, gateways } = counted(cluster);
  const list = cluster.nodes ?? [];
  return (
    <>
      <Title headingLevel="h2">{words.nodes}</Title>
      <Content component="p">
        {words.nodes}: {words.of(nodes.good, nodes.all)} · {words.gateways}: {words.of(gateways.good, gateways.all)}
      </Content>
      {list.length === 0 ? (
        <Content component="p">{words.noNodes}</Content>
      ) : (
        <Table aria-label={words.nodes} variant="compact" gridBreakPoint="grid-lg">
          <Thead>
            <Tr>
              <Th width={20}>{words.node}</Th>
              <Th width={15}>{words.role}</Th>
              <Th>{words.state}</Th>
              <Th>{words.address}</Th>
              <Th>{words.floating}</Th>
              <Th>{words.version}</Th>
              <Th>{words.labels}</Th>
              <Th screenReaderText={words.actions} />
            </Tr>
          </Thead>
          <Tbody>
            {list.map((node) => (
              <Tr key={node.server || node.name}>
                <Td dataLabel={words.node} className="burano-breaks">
                  {node.name}
                </Td>
                <Td dataLabel={words.role}>
                  {node.role && words.roles[node.role]}
                  {node.external && ` (${words.external})`}
                </Td>
                <Td dataLabel={words.state}>
                  <NodeState node={node} />
                </Td>
                <Td dataLabel={words.address}>{node.address}</Td>
                <Td dataLabel={words.floating}>{node.floating_address}</Td>
                <Td dataLabel={words.version}>{node.version}</Td>
                <Td dataLabel={words.labels}>
                  <Marks node={node} />
                </Td>
                <Td isActionCell>
                  {object && environment && (
                    <ActionMenu environment={environment} object={object} about={{ name: node.name ?? '', methods: deedsOf(node), given: { node: node.name ?? '' } }} />
                  )}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </>
  );
}

/** The labels and taints that are set through Burano. */
function Marks({ node }: { node: Node }) {
  const words = useText().clusters;
  const labels = Object.entries(node.set?.labels ?? {}).sort();
  const taints = node.set?.taints ?? [];
  if (labels.length + taints.length === 0) return null;
  return (
    <LabelGroup aria-label={words.labels}>
      {labels.map(([key, value]) => (
        <Label key={key} isCompact variant="outline">
          {`${key}=${value}`}
        </Label>
      ))}
      {taints.map(showTaint).map((taint) => (
        <Label key={taint} isCompact variant="outline" color="orange">
          {taint}
        </Label>
      ))}
    </LabelGroup>
  );
}

function NodeState({ node }: { node: Node }) {
  const words = useText().clusters;
  if (node.state === 'locked') {
    return (
      <Label isCompact status="info" icon={<LockIcon />}>
        {words.locked}
      </Label>
    );
  }
  if (!node.reachable) {
    return (
      <Label isCompact status="danger" icon={<ExclamationCircleIcon />}>
        {words.unreachable}
      </Label>
    );
  }
  if (node.ready === null || node.ready === undefined) {
    // Masters and gateways have no kubelet.
    return node.role !== 'minion' ? (
      <Label isCompact status="success" icon={<CheckCircleIcon />}>
        {words.reachable}
      </Label>
    ) : (
      <Label isCompact icon={<QuestionCircleIcon />}>
        {words.unknown}
      </Label>
    );
  }
  if (node.ready && node.state === 'cordoned') {
    return (
      <Label isCompact status="warning" icon={<BanIcon />}>
        {words.cordoned}
      </Label>
    );
  }
  return (
    <Label isCompact status={node.ready ? 'success' : 'warning'} icon={node.ready ? <CheckCircleIcon /> : undefined}>
      {node.ready ? words.ready : words.notReady}
    </Label>
  );
}

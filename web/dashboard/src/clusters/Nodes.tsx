import { Content, Label, Title } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, QuestionCircleIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';

import { useText } from '../text';
import { counted, type Cluster } from './clusters';

type Node = NonNullable<Cluster['nodes']>[number];

/** The servers of a cluster. */
export function Nodes({ cluster }: { cluster: Cluster }) {
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
              <Th>{words.node}</Th>
              <Th>{words.role}</Th>
              <Th>{words.state}</Th>
              <Th>{words.address}</Th>
              <Th>{words.floating}</Th>
              <Th>{words.version}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {list.map((node) => (
              <Tr key={node.server || node.name}>
                <Td dataLabel={words.node} className="burano-breaks">
                  {node.name}
                </Td>
                <Td dataLabel={words.role}>{node.role && words.roles[node.role]}</Td>
                <Td dataLabel={words.state}>
                  <NodeState node={node} />
                </Td>
                <Td dataLabel={words.address}>{node.address}</Td>
                <Td dataLabel={words.floating}>{node.floating_address}</Td>
                <Td dataLabel={words.version}>{node.version}</Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </>
  );
}

function NodeState({ node }: { node: Node }) {
  const words = useText().clusters;
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
  return (
    <Label isCompact status={node.ready ? 'success' : 'warning'} icon={node.ready ? <CheckCircleIcon /> : undefined}>
      {node.ready ? words.ready : words.notReady}
    </Label>
  );
}

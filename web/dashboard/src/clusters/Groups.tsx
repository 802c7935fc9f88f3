import { Content, Flex, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';

import { ActionMenu } from '../actions/ActionMenu';
import type { EnvironmentDetails, ObjectModel } from '../environments/environments';
import { useLanguage } from '../text';
import type { Cluster } from './clusters';

interface Props {
  cluster: Cluster;
  /** The object with the actions on groups; undefined while it is unknown. */
  object: ObjectModel | undefined;
  environment: EnvironmentDetails | undefined;
}

/** The groups of a cluster's minions: their limits, and the effect of their load. */
export function Groups({ cluster, object, environment }: Props) {
  const { text, language } = useLanguage();
  const words = text.clusters;
  const list = cluster.groups ?? [];
  const time = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' });
  return (
    <>
      <Flex justifyContent={{ default: 'justifyContentSpaceBetween' }}>
        <Title headingLevel="h2">{words.groups}</Title>
        {object && environment && <ActionMenu environment={environment} object={object} about={{ name: words.groups, methods: ['addGroup'], given: {} }} />}
      </Flex>
      <Table aria-label={words.groups} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th width={15}>{words.group}</Th>
            <Th>{words.nodes}</Th>
            <Th>{words.minimum}</Th>
            <Th>{words.maximum}</Th>
            <Th width={45}>{words.lastDecision}</Th>
            <Th screenReaderText={words.actions} />
          </Tr>
        </Thead>
        <Tbody>
          {list.map(({ name = '', nodes, minimum, maximum, last_decision: last }) => (
            <Tr key={name}>
              <Td dataLabel={words.group} className="burano-breaks">
                {name}
              </Td>
              <Td dataLabel={words.nodes}>{nodes}</Td>
              <Td dataLabel={words.minimum}>{minimum ?? words.fixed}</Td>
              <Td dataLabel={words.maximum}>{maximum}</Td>
              <Td dataLabel={words.lastDecision} className="burano-breaks">
                {last && (
                  <>
                    <Content component="small">{last.at && time.format(new Date(last.at))}</Content>
                    <Content component="p">{last.text}</Content>
                  </>
                )}
              </Td>
              <Td isActionCell>
                {object && environment && (
                  <ActionMenu environment={environment} object={object} about={{ name, methods: ['scale', 'setGroupLimits', 'setGroupCount', 'removeGroup'], given: { group: name } }} />
                )}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </>
  );
}

import { Content, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';

import { showAge, showTime } from '../api/time';
import { useLanguage } from '../text';
import type { KubernetesEvent } from './running';

/** Kubernetes' events about an object. */
export function EventTable({ events }: { events: KubernetesEvent[] }) {
  const { text, language } = useLanguage();
  const words = text.running;
  return (
    <>
      <Title headingLevel="h2">{words.events}</Title>
      {events.length === 0 ? (
        <Content component="p">{words.noEvents}</Content>
      ) : (
        <Table aria-label={words.events} variant="compact" gridBreakPoint="grid-lg">
          <Thead>
            <Tr>
              <Th modifier="nowrap">{words.last}</Th>
              <Th>{words.type}</Th>
              <Th>{words.reason}</Th>
              <Th modifier="nowrap">{words.times}</Th>
              <Th width={50}>{words.message}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {events.map((event, i) => (
              <Tr key={i}>
                <Td dataLabel={words.last} modifier="nowrap" title={showTime(event.last, language)}>
                  {showAge(event.last, language)}
                </Td>
                <Td dataLabel={words.type}>{words.types[event.type]}</Td>
                <Td dataLabel={words.reason}>{event.reason}</Td>
                <Td dataLabel={words.times}>{event.count}</Td>
                <Td dataLabel={words.message} className="burano-breaks">
                  {event.message}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </>
  );
}

import { Pagination, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { showAge, showTime } from '../api/time';
import { useLanguage } from '../text';
import { PodState } from './PodState';
import { counts, type Pod } from './running';

const perPage = 50;

/** Pods with their states, a page at a time. */
export function PodTable({ list, environment, cluster }: { list: Pod[]; environment: string; cluster: string }) {
  const { text, language } = useLanguage();
  const words = text.running;
  const [page, setPage] = useState(1);
  const shown = list.slice((page - 1) * perPage, page * perPage);
  return (
    <section className="burano-spaced">
      <Title headingLevel="h2">{words.pods(list.length)}</Title>
      <Table aria-label={words.pods(list.length)} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th width={25}>{words.name}</Th>
            <Th>{words.namespace}</Th>
            <Th>{words.state}</Th>
            <Th>{words.ready}</Th>
            <Th modifier="nowrap">{words.restarts}</Th>
            <Th width={15}>{words.node}</Th>
            <Th modifier="nowrap">{words.age}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {shown.map((pod) => {
            const { ready, all, restarts } = counts(pod);
            return (
              <Tr key={`${pod.namespace}/${pod.name}`}>
                <Td dataLabel={words.name} className="burano-breaks">
                  <Link
                    to="/environments/$environment/clusters/$object/pods/$namespace/$pod"
                    params={{ environment, object: cluster, namespace: pod.namespace, pod: pod.name }}
                  >
                    {pod.name}
                  </Link>
                </Td>
                <Td dataLabel={words.namespace}>{pod.namespace}</Td>
                <Td dataLabel={words.state}>
                  <PodState state={pod.state} healthy={pod.healthy} />
                </Td>
                <Td dataLabel={words.ready}>{words.of(ready, all)}</Td>
                <Td dataLabel={words.restarts}>{restarts}</Td>
                <Td dataLabel={words.node} className="burano-breaks">
                  {pod.node}
                </Td>
                <Td dataLabel={words.age} modifier="nowrap" title={showTime(pod.created, language)}>
                  {showAge(pod.created, language)}
                </Td>
              </Tr>
            );
          })}
        </Tbody>
      </Table>
      {list.length > perPage && (
        <Pagination
          itemCount={list.length}
          perPage={perPage}
          page={page}
          perPageOptions={[]}
          onSetPage={(_event, next) => setPage(next)}
          variant="bottom"
          titles={{ paginationAriaLabel: words.pods(list.length) }}
        />
      )}
    </section>
  );
}

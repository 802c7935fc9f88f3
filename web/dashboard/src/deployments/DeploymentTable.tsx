import { Pagination } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { parseTime, showSpan, showTime } from '../api/time';
import { useLanguage } from '../text';
import type { Deployment } from './deployments';
import { DeploymentState } from './DeploymentState';

interface Props {
  deployments: Deployment[];
  /** Names of environments by id; without it the environment is not shown. */
  environments?: Map<string, string>;
}

/** Deployments, newest first. */
export function DeploymentTable({ deployments, environments }: Props) {
  const { text, language } = useLanguage();
  const words = text.deployments;
  const [page, setPage] = useState(1);
  const [perPage, setPerPage] = useState(20);
  const took = (one: Deployment) =>
    one.finished && one.started ? showSpan((parseTime(one.finished).getTime() - parseTime(one.started).getTime()) / 1000) : '';
  const what = (one: Deployment) => {
    if (!one.action) return words.deletion;
    return one.action.method === 'deploy' ? words.deployment : words.action(one.action.method ?? '');
  };
  return (
    <>
      {deployments.length > perPage && (
        <Pagination
          itemCount={deployments.length}
          page={page}
          perPage={perPage}
          onSetPage={(_event, next) => setPage(next)}
          onPerPageSelect={(_event, size) => {
            setPerPage(size);
            setPage(1);
          }}
        />
      )}
      <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th>{words.started}</Th>
            {environments && <Th>{words.environment}</Th>}
            <Th>{words.what}</Th>
            <Th>{words.state}</Th>
            <Th>{words.took}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {deployments.slice((page - 1) * perPage, page * perPage).map((one) => (
            <Tr key={one.id}>
              <Td dataLabel={words.started}>
                <Link
                  to="/environments/$environment/deployments/$deployment"
                  params={{ environment: one.environment_id ?? '', deployment: one.id ?? '' }}
                >
                  {showTime(one.started ?? one.created, language)}
                </Link>
              </Td>
              {environments && (
                <Td dataLabel={words.environment} className="burano-breaks">
                  {environments.get(one.environment_id ?? '') ?? one.environment_id}
                </Td>
              )}
              <Td dataLabel={words.what}>{what(one)}</Td>
              <Td dataLabel={words.state}>
                <DeploymentState state={one.state} />
              </Td>
              <Td dataLabel={words.took}>{took(one)}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </>
  );
}

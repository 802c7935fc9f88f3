import { Button, Content, EmptyState, EmptyStateBody, Skeleton, Title } from '@patternfly/react-core';
import { HistoryIcon } from '@patternfly/react-icons';
import { queryOptions, useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';

import { answered, api } from '../api/client';
import { showTime } from '../api/time';
import type { Deployment } from '../deployments/deployments';
import { DeploymentState } from '../deployments/DeploymentState';
import { Lines } from '../deployments/Lines';
import { deploymentsQuery, type ObjectModel } from '../environments/environments';
import { namesOf } from '../environments/objects';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { idsIn } from './components';

/** Of how many runs reports are asked for at a time. */
const more = 5;

const reportsQuery = (run: Deployment, ids: string[]) =>
  queryOptions({
    queryKey: ['environments', run.environment_id, 'reports', run.id, ids],
    queryFn: async () =>
      (
        await answered(
          api.GET('/v1/environments/{environment}/deployments/{deployment}', {
            params: {
              path: { environment: run.environment_id ?? '', deployment: run.id ?? '' },
              // The parameter may be repeated, which its description says in words only.
              query: { service_id: ids as unknown as string },
            },
          }),
        )
      ).reports ?? [],
    staleTime: run.finished ? Infinity : 0,
    refetchInterval: run.finished ? false : 2_000,
  });

/** What an object, and what it holds, reported in each run, the newest first. */
export function ComponentLog({ environment, object }: { environment: string; object: ObjectModel }) {
  const { text, language } = useLanguage();
  const words = text.components;
  const [count, setCount] = useState(more);
  const runs = useQuery(deploymentsQuery(environment));
  // An address has room for so many ids; what is deeper in a large cluster has pages of its own.
  const ids = useMemo(() => idsIn(object).slice(0, 60), [object]);
  const names = useMemo(() => namesOf(object), [object]);
  const shown = (runs.data ?? []).slice(0, count);
  const reports = useQueries({ queries: shown.map((run) => reportsQuery(run, ids)) });
  if (runs.error) return <Failure error={runs.error} onRetry={() => void runs.refetch()} />;
  if (!runs.data) return <Skeleton height="12rem" screenreaderText={text.shell.loading} />;
  if (runs.data.length === 0) {
    return (
      <EmptyState titleText={words.noRuns} icon={HistoryIcon} headingLevel="h2">
        <EmptyStateBody>{words.noRunsWhat}</EmptyStateBody>
      </EmptyState>
    );
  }
  return (
    <>
      {shown.map((run, i) => (
        <section key={run.id} className="burano-spaced">
          <Title headingLevel="h2" size="md">
            <Link to="/environments/$environment/deployments/$deployment" params={{ environment, deployment: run.id ?? '' }}>
              {words.run(showTime(run.started ?? run.created, language))}
            </Link>{' '}
            <DeploymentState state={run.state} />
          </Title>
          {reports[i]?.error && <Failure error={reports[i].error} />}
          {reports[i]?.data?.length === 0 && <Content component="small">{words.quiet}</Content>}
          {(reports[i]?.data?.length ?? 0) > 0 && <Lines reports={reports[i]?.data ?? []} names={names} />}
        </section>
      ))}
      {count < runs.data.length && (
        <Button variant="link" isInline onClick={() => setCount(count + more)}>
          {words.earlierRuns}
        </Button>
      )}
    </>
  );
}

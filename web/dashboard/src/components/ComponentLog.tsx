import { Button, EmptyState, EmptyStateBody, Skeleton, Title } from '@patternfly/react-core';
import { HistoryIcon } from '@patternfly/react-icons';
import { infiniteQueryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';

import { answered, api } from '../api/client';
import { showTime } from '../api/time';
import { recentQuery } from '../deployments/deployments';
import { DeploymentState } from '../deployments/DeploymentState';
import { Lines } from '../deployments/Lines';
import type { ObjectModel } from '../environments/environments';
import { namesOf } from '../environments/objects';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { byRun } from './runs';

/** How many reports are asked for at a time. */
const size = 200;

/** Of how many runs it is known how they went. */
const known = 100;

/** How often it is asked for more while something runs, in milliseconds. */
const whileRunning = 3_000;

const reportsQuery = (environment: string, object: string) =>
  infiniteQueryOptions({
    queryKey: ['environments', environment, 'reports of', object],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET('/burano/v1/environments/{environment}/reports', {
          params: { path: { environment }, query: { object, limit: size, ...(pageParam && { marker: pageParam }) } },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (page) => page.next_marker,
  });

/** The reports of an object and its content in each run, the newest first. */
export function ComponentLog({ environment, object }: { environment: string; object: ObjectModel }) {
  const { text, language } = useLanguage();
  const words = text.components;
  const recent = useQuery(recentQuery(environment, known));
  const running = recent.data?.[0] !== undefined && !recent.data[0].finished;
  const reports = useInfiniteQuery({ ...reportsQuery(environment, object['?']?.id ?? ''), refetchInterval: running && whileRunning });
  const names = useMemo(() => namesOf(object), [object]);
  const runs = useMemo(() => byRun(reports.data?.pages.flatMap((page) => page.reports) ?? []), [reports.data]);
  if (reports.error) return <Failure error={reports.error} onRetry={() => void reports.refetch()} />;
  if (reports.isPending) return <Skeleton height="12rem" screenreaderText={text.shell.loading} />;
  if (runs.length === 0) {
    return (
      <EmptyState titleText={words.noRuns} icon={HistoryIcon} headingLevel="h2">
        <EmptyStateBody>{words.noRunsWhat}</EmptyStateBody>
      </EmptyState>
    );
  }
  return (
    <>
      {runs.map((run) => {
        const deployment = recent.data?.find((one) => one.id === run.task);
        return (
          <section key={run.task} className="burano-spaced">
            <Title headingLevel="h2" size="md">
              <Link to="/environments/$environment/deployments/$deployment" params={{ environment, deployment: run.task }}>
                {words.run(showTime(deployment?.started ?? run.reports[0]?.created, language))}
              </Link>{' '}
              {deployment && <DeploymentState state={deployment.state} />}
            </Title>
            <Lines reports={run.reports} names={names} />
          </section>
        );
      })}
      {reports.hasNextPage && (
        <Button variant="link" isInline onClick={() => void reports.fetchNextPage()} isLoading={reports.isFetchingNextPage} isDisabled={reports.isFetchingNextPage}>
          {words.earlierRuns}
        </Button>
      )}
    </>
  );
}

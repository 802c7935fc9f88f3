import { EmptyState, EmptyStateBody, PageSection, Skeleton, Title } from '@patternfly/react-core';
import { HistoryIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';

import { environmentsQuery } from '../environments/environments';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { projectDeploymentsQuery } from './deployments';
import { DeploymentTable } from './DeploymentTable';

/** All deployments of the project. */
export function DeploymentsPage() {
  const text = useText();
  const words = text.deployments;
  const deployments = useQuery(projectDeploymentsQuery);
  const environments = useQuery(environmentsQuery);
  const names = new Map(environments.data?.map((one) => [one.id ?? '', one.name ?? '']));
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{words.title}</Title>
      </PageSection>
      <PageSection isFilled>
        {deployments.error && <Failure error={deployments.error} onRetry={() => void deployments.refetch()} />}
        {deployments.isPending && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
        {deployments.data?.length === 0 && (
          <EmptyState titleText={words.none} icon={HistoryIcon} headingLevel="h2">
            <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
          </EmptyState>
        )}
        {deployments.data && deployments.data.length > 0 && <DeploymentTable deployments={deployments.data} environments={names} />}
      </PageSection>
    </>
  );
}

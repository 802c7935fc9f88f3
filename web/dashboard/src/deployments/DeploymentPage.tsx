import { Alert, Button, Flex, FlexItem, PageSection, Title } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';

import { ActionResult } from '../actions/ActionResult';
import { useFollow } from '../api/follow';
import { showTime } from '../api/time';
import { environmentQuery } from '../environments/environments';
import { EnvironmentTrail } from '../environments/EnvironmentTrail';
import { namesOf } from '../environments/objects';
import { useWatch } from '../notices/useWatch';
import { Confirm } from '../shell/Confirm';
import { useLanguage } from '../text';
import { cancelDeployment, deploymentQuery, recentQuery } from './deployments';
import { DeploymentState } from './DeploymentState';
import { ReportLog } from './ReportLog';
import { Steps } from './Steps';
import { WhyFailed } from './WhyFailed';

/** One deployment: why it failed, its log and its steps on a line of time, both while it runs. */
export function DeploymentPage() {
  const { text, language } = useLanguage();
  const words = text.deployments;
  const { environment, deployment } = useParams({ from: '/environments/$environment/deployments/$deployment' });
  const navigate = useNavigate();
  const client = useQueryClient();
  const live = useFollow(deployment);
  const details = useQuery(environmentQuery(environment));
  const one = useQuery(deploymentQuery(deployment)).data;
  const newest = useQuery(recentQuery(environment, 1)).data?.[0]?.id === deployment;
  const names = useMemo(() => namesOf(one?.description), [one?.description]);
  const [cancelling, setCancelling] = useState(false);
  const { ended } = live;
  useEffect(() => {
    if (ended) void client.invalidateQueries({ queryKey: ['environments'] });
  }, [ended, client]);
  const failed = ended && live.state === 'completed_w_errors';
  const running = live.state !== '' && !ended;
  useWatch(deployment, running, ended);

  return (
    <>
      <EnvironmentTrail environment={environment} tab="history" here={words.deployment} />
      <PageSection>
        <Flex>
          <FlexItem grow={{ default: 'grow' }}>
            <Title headingLevel="h1">{words.one(showTime(one?.started ?? one?.created, language))}</Title>
          </FlexItem>
          <FlexItem>
            <span role="status">
              <DeploymentState state={live.state || one?.state} />
            </span>
          </FlexItem>
          {running && (
            <FlexItem>
              <Button variant="secondary" onClick={() => setCancelling(true)}>
                {words.cancel}
              </Button>
            </FlexItem>
          )}
          {ended && newest && !failed && one?.action?.method === 'deploy' && (
            <FlexItem>
              <Button variant="secondary" onClick={() => void navigate({ to: '/environments/$environment', params: { environment } })}>
                {words.toComponents}
              </Button>
            </FlexItem>
          )}
        </Flex>
        {failed && <WhyFailed environment={environment} deployment={deployment} reports={live.reports} names={names} />}
        {running && !live.connected && <Alert variant="warning" isInline isPlain title={words.reconnecting} />}
      </PageSection>
      {ended && !failed && one?.action && one.action.method !== 'deploy' && (
        <PageSection>
          <Title headingLevel="h2">{words.result}</Title>
          <ActionResult environment={environment} task={deployment} />
        </PageSection>
      )}
      <PageSection>
        <Title headingLevel="h2">{words.log}</Title>
        <ReportLog reports={live.reports} names={names} file={`${details.data?.name ?? 'deployment'}-${deployment}.log`} />
      </PageSection>
      <PageSection isFilled>
        <Title headingLevel="h2">{words.steps}</Title>
        <Steps deployment={deployment} running={running} names={names} />
      </PageSection>
      {cancelling && (
        <Confirm
          title={words.cancelTitle}
          what={words.cancelWhat}
          action={words.cancel}
          send={() => cancelDeployment(deployment)}
          onDone={() => setCancelling(false)}
          onClose={() => setCancelling(false)}
        />
      )}
    </>
  );
}

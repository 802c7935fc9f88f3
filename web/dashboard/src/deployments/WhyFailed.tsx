import { Alert, Button, Content, Flex, FlexItem } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';

import type { Report } from '../api/follow';
import { pathOf } from '../components/editing';
import { openDraftsQuery, refusedOf, takeUp } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import { environmentQuery } from '../environments/environments';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { recentQuery, retryDeployment } from './deployments';
import { causesOf, type Cause } from './failure';

interface Props {
  environment: string;
  deployment: string;
  reports: Report[];
  names: Map<string, string>;
}

/** How many further causes are shown; the log has all. */
const most = 4;

/** Why a deployment failed: the sentence, the object, and the next step. */
export function WhyFailed({ environment, deployment, reports, names }: Props) {
  const words = useText().deployments;
  const [first, ...others] = useMemo(() => causesOf(reports), [reports]);
  return (
    <Alert variant="danger" isInline title={first?.sentence ?? words.noCause} className="burano-breaks burano-failure">
      {first && <About environment={environment} cause={first} names={names} />}
      {others.length > 0 && (
        <Content component="ul">
          {others.slice(0, most).map((cause) => (
            <Content component="li" key={`${cause.object} ${cause.sentence}`}>
              {cause.sentence} <About environment={environment} cause={cause} names={names} />
            </Content>
          ))}
          {others.length > most && <Content component="li">{words.moreCauses(others.length - most)}</Content>}
        </Content>
      )}
      <NextSteps environment={environment} deployment={deployment} object={first?.object ?? ''} />
    </Alert>
  );
}

/** The object of a cause, as a link. */
function About({ environment, cause, names }: { environment: string; cause: Cause; names: Map<string, string> }) {
  const words = useText().deployments;
  const name = names.get(cause.object);
  if (!name || cause.object === environment) return null;
  return (
    <span>
      {words.object}:{' '}
      <Link to="/environments/$environment/components/$object" params={{ environment, object: cause.object }}>
        {name}
      </Link>
    </span>
  );
}

/** The ways on from a failure: correct the refused edit, try again, edit the object; from one that is past, to the newest deployment. */
function NextSteps({ environment, deployment, object }: { environment: string; deployment: string; object: string }) {
  const text = useText();
  const words = text.deployments;
  const navigate = useNavigate();
  const client = useQueryClient();
  const { user, draft } = useDraft(environment);
  const details = useQuery(environmentQuery(environment));
  const newest = useQuery(recentQuery(environment, 1)).data?.[0]?.id;
  const drafts = useQuery(openDraftsQuery(environment)).data ?? [];
  const refused = draft?.rejected ? draft.session : refusedOf(draft, drafts)?.id;
  const to = (task: string) => navigate({ to: '/environments/$environment/deployments/$deployment', params: { environment, deployment: task } });
  const retry = useMutation({ mutationFn: () => retryDeployment(deployment), onSuccess: to });
  const correct = useMutation({
    mutationFn: (session: string) => takeUp(client, user, environment, session),
    onSuccess: () => navigate({ to: '/environments/$environment', params: { environment } }),
  });
  if (newest === undefined) return null;
  if (newest !== deployment) {
    return (
      <Button variant="secondary" className="burano-spaced" onClick={() => void to(newest)}>
        {words.toNewest}
      </Button>
    );
  }
  const error = retry.error ?? correct.error;
  return (
    <>
      {error && <Failure error={error} />}
      <Flex className="burano-spaced" spaceItems={{ default: 'spaceItemsSm' }}>
        {refused && (
          <FlexItem>
            <Button onClick={() => correct.mutate(refused)} isDisabled={correct.isPending} isLoading={correct.isPending}>
              {text.draft.correct}
            </Button>
          </FlexItem>
        )}
        <FlexItem>
          <Button variant={refused ? 'secondary' : 'primary'} onClick={() => retry.mutate()} isDisabled={retry.isPending} isLoading={retry.isPending}>
            {words.retry}
          </Button>
        </FlexItem>
        {!refused && pathOf(details.data?.services, object) && (
          <FlexItem>
            <Button
              variant="secondary"
              onClick={() =>
                void navigate({ to: '/environments/$environment/components/$object', params: { environment, object }, search: { edit: true } })
              }
            >
              {words.editObject}
            </Button>
          </FlexItem>
        )}
      </Flex>
    </>
  );
}

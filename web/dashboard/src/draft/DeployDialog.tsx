import { Alert, Content, Skeleton } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { Consents } from './Consents';
import { deploy } from './draft';
import { areGiven, shownPlanQuery } from './plan';
import { PlanDetails } from './PlanDetails';

interface Props {
  environment: string;
  name: string;
  user: string;
  /** The draft that is deployed. */
  session: string;
  onDone: (deployment: string) => void;
  onClose: () => void;
}

/** Shows the plan of a draft, asks for consent to each loss, and deploys the draft as it was shown. */
export function DeployDialog({ environment, name, user, session, onDone, onClose }: Props) {
  const text = useText();
  const words = text.draft;
  const client = useQueryClient();
  const shown = useQuery(shownPlanQuery(environment, session));
  const [agreed, setAgreed] = useState<ReadonlySet<string>>(new Set());
  const [moved, setMoved] = useState(false);
  const plan = shown.data;
  const consents = plan?.consents ?? [];
  const send = async () => {
    if (!plan) throw new Error(text.shell.failed);
    setMoved(false);
    try {
      return await deploy(client, user, environment, session, plan);
    } catch (refusal) {
      const { data: next } = await shown.refetch();
      setMoved(next !== undefined && next.plan !== plan.plan);
      throw refusal;
    }
  };
  return (
    <Confirm
      title={words.deployTitle(name)}
      action={text.environments.deploy}
      harmless={plan && plan.losses.length + consents.length === 0}
      isReady={plan !== undefined && plan.problems.length === 0 && !shown.isFetching && areGiven(consents, agreed)}
      explain={(refusal) =>
        moved ? (
          <Alert variant="warning" isInline isLiveRegion title={words.moved} className="burano-spaced">
            <Content component="p" className="burano-breaks">
              {refusal.message}
            </Content>
          </Alert>
        ) : (
          <Failure error={refusal} />
        )
      }
      what={
        <>
          {shown.error && !plan && <Failure error={shown.error} onRetry={() => void shown.refetch()} />}
          {shown.isPending && <Skeleton height="6rem" screenreaderText={text.shell.loading} />}
          {plan && plan.problems.length > 0 && <Alert variant="danger" isInline isPlain title={words.problems(plan.problems.length)} />}
          {plan && <PlanDetails environment={environment} plan={plan} asked={consents} isOpen />}
          <Consents consents={consents} agreed={agreed} onAgree={setAgreed} />
        </>
      }
      send={send}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

import { Alert, AlertActionLink } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { DiscardDialog } from './DiscardDialog';
import { discard, type Draft } from './draft';
import { previewQuery } from './plan';
import { PlanDetails } from './PlanDetails';

interface Props {
  environment: string;
  user: string;
  draft: Draft;
}

/** Shows the draft's changes, and its faults. */
export function DraftBanner({ environment, user, draft }: Props) {
  const words = useText().draft;
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const drop = useMutation({ mutationFn: () => discard(client, user, environment, draft) });
  if (draft.state === 'outdated') {
    return (
      <Alert
        variant="warning"
        isInline
        className="burano-spaced"
        title={words.outdated}
        actionLinks={<AlertActionLink onClick={() => drop.mutate()}>{words.discardOutdated}</AlertActionLink>}
      >
        {words.outdatedWhat}
        {drop.error && <Failure error={drop.error} />}
      </Alert>
    );
  }
  return (
    <>
      <Undeployed environment={environment} draft={draft} onDiscard={() => setAsking(true)} />
      {asking && (
        <DiscardDialog
          environment={environment}
          session={draft.session}
          send={() => discard(client, user, environment, draft)}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}

function Undeployed({ environment, draft, onDiscard }: { environment: string; draft: Draft; onDiscard: () => void }) {
  const words = useText().draft;
  const preview = useQuery(previewQuery(environment, draft.session));
  if (preview.error) return <Failure error={preview.error} onRetry={() => void preview.refetch()} />;
  const problems = preview.data?.problems.length ?? 0;
  return (
    <Alert
      variant={problems > 0 ? 'danger' : 'info'}
      isInline
      className="burano-spaced"
      title={problems > 0 ? words.problems(problems) : words.undeployed}
      actionLinks={<AlertActionLink onClick={onDiscard}>{words.discard}</AlertActionLink>}
    >
      {draft.rejected && <p>{words.wasRefused}</p>}
      {preview.data && <PlanDetails environment={environment} plan={preview.data} />}
    </Alert>
  );
}

import { Alert, AlertActionLink, Content } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { previewQuery } from '../environments/environments';
import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { Changes } from './Changes';
import { countChanges, discard, type Draft } from './draft';
import { KubernetesChanges } from './KubernetesChanges';
import { Losses } from './Losses';
import { Means } from './Means';

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
      <Undeployed environment={environment} session={draft.session} onDiscard={() => setAsking(true)} />
      {asking && (
        <Confirm
          title={words.discardTitle}
          what={words.discardWhat}
          action={words.discard}
          send={() => discard(client, user, environment, draft)}
          onDone={() => setAsking(false)}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}

function Undeployed({ environment, session, onDiscard }: { environment: string; session: string; onDiscard: () => void }) {
  const words = useText().draft;
  const preview = useQuery(previewQuery(environment, session));
  if (preview.error) return <Failure error={preview.error} onRetry={() => void preview.refetch()} />;
  const changes = preview.data?.changes ?? [];
  const problems = preview.data?.problems ?? [];
  const losses = preview.data?.losses ?? [];
  const kubernetes = preview.data?.kubernetes ?? [];
  const counts = countChanges(changes);
  return (
    <Alert
      variant={problems.length > 0 ? 'danger' : 'info'}
      isInline
      className="burano-spaced"
      title={problems.length > 0 ? words.problems(problems.length) : words.undeployed}
      actionLinks={<AlertActionLink onClick={onDiscard}>{words.discard}</AlertActionLink>}
    >
      {problems.length > 0 && (
        <Content component="ul">
          {problems.map((problem, i) => (
            <Content component="li" key={i} className="burano-breaks">
              {problem.path}: {problem.message}
            </Content>
          ))}
        </Content>
      )}
      {preview.data && <p role="status">{changes.length === 0 ? words.nothing : words.counts(counts.added, counts.changed, counts.removed)}</p>}
      {changes.length > 0 && <Changes changes={changes} />}
      {kubernetes.length > 0 && <KubernetesChanges changes={kubernetes} />}
      <Means means={preview.data?.means ?? []} />
      {losses.length > 0 && <Losses losses={losses} />}
    </Alert>
  );
}

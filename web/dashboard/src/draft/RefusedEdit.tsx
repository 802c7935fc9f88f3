import { Alert, AlertActionLink } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';

import { showTime } from '../api/time';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { DiscardDialog } from './DiscardDialog';
import { discardOther, openDraftsQuery, refusedOf, takeUp, type Draft } from './draft';
import { previewQuery } from './plan';
import { Problems } from './Problems';

interface Props {
  environment: string;
  user: string;
  draft: Draft | null;
}

/** The user's last edit, if its deployment was refused: it stays as a draft, to be corrected or discarded. */
export function RefusedEdit({ environment, user, draft }: Props) {
  const refused = refusedOf(draft, useQuery(openDraftsQuery(environment)).data ?? []);
  return refused?.id && <Refused key={refused.id} environment={environment} user={user} session={refused.id} updated={refused.updated} />;
}

function Refused({ environment, user, session, updated }: { environment: string; user: string; session: string; updated: string }) {
  const { text, language } = useLanguage();
  const words = text.draft;
  const client = useQueryClient();
  const navigate = useNavigate();
  const preview = useQuery(previewQuery(environment, session));
  const [asking, setAsking] = useState(false);
  const correct = useMutation({ mutationFn: () => takeUp(client, user, environment, session) });
  return (
    <Alert
      variant="warning"
      isInline
      className="burano-spaced"
      title={words.refused}
      actionLinks={
        <>
          <AlertActionLink onClick={() => correct.mutate()} isDisabled={correct.isPending}>
            {words.correct}
          </AlertActionLink>
          <AlertActionLink onClick={() => setAsking(true)}>{words.discardRefused}</AlertActionLink>
          <AlertActionLink onClick={() => void navigate({ to: '.', search: { tab: 'history' } })}>{words.whyRefused}</AlertActionLink>
        </>
      }
    >
      <p>{words.refusedWhat(showTime(updated, language))}</p>
      <Problems environment={environment} session={session} problems={preview.data?.problems ?? []} />
      {correct.error && <Failure error={correct.error} />}
      {asking && (
        <DiscardDialog environment={environment} session={session} send={() => discardOther(client, environment, session)} onClose={() => setAsking(false)} />
      )}
    </Alert>
  );
}

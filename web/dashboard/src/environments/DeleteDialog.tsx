import { Alert, Content, Skeleton } from '@patternfly/react-core';
import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { showTime } from '../api/time';
import { Consents } from '../draft/Consents';
import { Means } from '../draft/Means';
import { areGiven, without } from '../draft/plan';
import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { deletionQuery, type Deletion, type Environment } from './environments';

interface Props {
  title: string;
  of: Environment[];
  send: () => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
}

/** Lists what goes with environments and what stays, asks for consent to each loss, and deletes them. */
export function DeleteDialog({ title, of, send, onDone, onClose }: Props) {
  const { text } = useLanguage();
  const words = text.environments;
  const [agreed, setAgreed] = useState<ReadonlySet<string>>(new Set());
  const asked = useQueries({ queries: of.map((one) => deletionQuery(one.id ?? '')) });
  const failed = asked.find((one) => one.error);
  const deletions = asked.flatMap((one) => one.data ?? []);
  const consents = deletions.flatMap((one) => one.consents);
  const days = Math.floor((deletions[0]?.undelete_seconds ?? 0) / 86_400);
  return (
    <Confirm
      title={title}
      action={words.delete}
      isReady={deletions.length === of.length && deletions.every((one) => !one.busy) && areGiven(consents, agreed)}
      what={
        <>
          <Content component="p">
            {words.deleteWhat} {days > 0 && words.undelete(days)}
          </Content>
          {failed?.error && <Failure error={failed.error} onRetry={() => void failed.refetch()} />}
          {asked.some((one) => one.isPending) && <Skeleton height="4rem" screenreaderText={text.shell.loading} />}
          {of.map((one, i) => (
            <div key={one.id}>
              {of.length > 1 && <Content component="h3">{one.name}</Content>}
              <Effects environment={one.id ?? ''} deletion={asked[i]?.data} />
            </div>
          ))}
          <Consents consents={consents} agreed={agreed} onAgree={setAgreed} />
        </>
      }
      send={send}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

function Effects({ environment, deletion }: { environment: string; deletion?: Deletion }) {
  const { text, language } = useLanguage();
  const words = text.environments;
  if (!deletion) return null;
  const { busy, consents, stays } = deletion;
  const goes = without(deletion.goes, consents);
  return (
    <>
      {busy && (
        <Alert variant="danger" isInline title={words.busy}>
          {words.busyWhat(busy.user_name || busy.user_id || '', showTime(busy.since, language))}{' '}
          {busy.deployment_id && (
            <Link to="/environments/$environment/deployments/$deployment" params={{ environment, deployment: busy.deployment_id }}>
              {text.deployments.deployment}
            </Link>
          )}
        </Alert>
      )}
      {goes.length > 0 && <Content component="p">{words.goes}</Content>}
      <Means means={goes} />
      {stays.length > 0 && <Content component="p">{words.stays}</Content>}
      <Means means={stays} />
    </>
  );
}

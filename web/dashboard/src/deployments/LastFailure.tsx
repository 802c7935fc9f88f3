import { Alert } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';

import { showTime } from '../api/time';
import { openDraftsQuery, refusedOf, type Draft } from '../draft/draft';
import { isBusy, type EnvironmentDetails } from '../environments/environments';
import { namesOf } from '../environments/objects';
import { useLanguage } from '../text';
import { recentQuery, type Deployment } from './deployments';
import { causesQuery, failureOf } from './failure';
import { About } from './WhyFailed';

/** How many runs are looked through for the last deployment. */
const recent = 10;

/** The failure that an environment is left in, with the way to its deployment. A refused edit, which changed nothing, is shown by itself. */
export function LastFailure({ details, draft }: { details: EnvironmentDetails; draft: Draft | null }) {
  const environment = details.id ?? '';
  const failed = failureOf(useQuery(recentQuery(environment, recent)).data ?? []);
  const drafts = useQuery(openDraftsQuery(environment)).data ?? [];
  if (!failed || isBusy(details) || draft?.rejected || refusedOf(draft, drafts)) return null;
  return <Failed key={failed.id} details={details} failed={failed} />;
}

function Failed({ details, failed }: { details: EnvironmentDetails; failed: Deployment }) {
  const { text, language } = useLanguage();
  const words = text.deployments;
  const [environment, deployment] = [details.id ?? '', failed.id ?? ''];
  const causes = useQuery(causesQuery(environment, deployment));
  const names = useMemo(() => namesOf(details.services), [details.services]);
  const [first] = causes.data ?? [];
  if (causes.isPending) return null;
  return (
    <Alert variant="danger" isInline title={first?.sentence ?? words.noCause} className="burano-breaks burano-spaced">
      {first && <About environment={environment} cause={first} names={names} />}
      <p>
        <Link to="/environments/$environment/deployments/$deployment" params={{ environment, deployment }}>
          {words.toFailed(showTime(failed.started ?? failed.created, language))}
        </Link>
      </p>
    </Alert>
  );
}

// The plan of a deployment: what it does, what it loses, and the consents that it needs.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Plan = Schema<'Preview'>;
export type Consent = Schema<'Consent'>;

const askPlan = (environment: string, session: string): Promise<Plan> =>
  answered(api.GET('/burano/v1/environments/{environment}/sessions/{session}/preview', { params: { path: { environment, session } } }));

/** The plan of a draft's deployment. */
export const previewQuery = (environment: string, session: string) =>
  queryOptions({
    queryKey: ['environments', environment, session, 'preview'],
    queryFn: () => askPlan(environment, session),
  });

/** The plan that a user is about to agree to. It is requested once: a later plan must not take its place unseen. */
export const shownPlanQuery = (environment: string, session: string) =>
  queryOptions({
    queryKey: ['plans', environment, session],
    queryFn: () => askPlan(environment, session),
    staleTime: Infinity,
    gcTime: 0,
  });

/** Reports whether a user must see a plan before its deployment: it does more than add and change, or is refused. */
export const needsLook = ({ changes, means, losses, problems, consents }: Plan): boolean =>
  means.length + losses.length + problems.length + consents.length > 0 || changes.some((one) => one.change === 'removed');

/** The sentences that no consent repeats. */
export const without = (sentences: string[], consents: Consent[]): string[] =>
  sentences.filter((one) => !consents.some((consent) => consent.message === one));

/** Identifies a consent together with its words: an object that loses more than was shown wants another consent. */
export const keyOf = ({ object_id, message }: Consent): string => `${object_id} ${message}`;

/** Reports whether a user has agreed to all consents. */
export const areGiven = (consents: Consent[], agreed: ReadonlySet<string>): boolean => consents.every((one) => agreed.has(keyOf(one)));

/** The agreed consents with another one added or withdrawn. */
export function agreeing(agreed: ReadonlySet<string>, consent: Consent, on: boolean): ReadonlySet<string> {
  const next = new Set(agreed);
  if (on) next.add(keyOf(consent));
  else next.delete(keyOf(consent));
  return next;
}

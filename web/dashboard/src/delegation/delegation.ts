// The standing delegation of an environment: in whose name tasks run that nobody with a password starts.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Delegation = Schema<'Delegation'>;

/** null where there is none. */
export const delegationQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'delegation'],
    queryFn: (): Promise<Delegation | null> =>
      answered(api.GET('/burano/v1/environments/{environment}/delegation', { params: { path: { environment } } })),
  });

/** Makes the delegation the caller's; for so many days, or without an end. */
export const giveDelegation = (environment: string, roles: string[], days: number): Promise<Delegation> =>
  answered(
    api.PUT('/burano/v1/environments/{environment}/delegation', {
      params: { path: { environment } },
      body: { ...(roles.length > 0 && { roles }), ...(days > 0 && { expires: inDays(days) }) },
    }),
  );

export const revokeDelegation = (environment: string): Promise<unknown> =>
  answered(api.DELETE('/burano/v1/environments/{environment}/delegation', { params: { path: { environment } }, parseAs: 'text' }));

/** The time in so many days, as the API takes it: UTC in whole seconds. */
export const inDays = (days: number, now = Date.now()): string => `${new Date(now + days * 86_400_000).toISOString().slice(0, 19)}Z`;

/** Whether a delegation is over, or is soon. */
export function expiry(delegation: Delegation, now = Date.now()): 'never' | 'later' | 'soon' | 'over' {
  if (!delegation.expires) return 'never';
  const left = Date.parse(delegation.expires) - now;
  return left <= 0 ? 'over' : left < 14 * 86_400_000 ? 'soon' : 'later';
}

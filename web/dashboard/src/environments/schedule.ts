// When an environment sleeps and wakes by itself.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Hibernation = Schema<'Hibernation'>;
export type SleepSchedule = Schema<'HibernationSchedule'>;

/** Whether an environment sleeps, and its schedule. */
export const hibernationQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'hibernation'],
    queryFn: () => answered(api.GET('/burano/v1/environments/{environment}/hibernation', { params: { path: { environment } } })),
    refetchInterval: 60_000,
  });

export const setSchedule = (environment: string, wanted: Pick<SleepSchedule, 'zone' | 'sleep' | 'wake'>): Promise<Hibernation> =>
  answered(api.PUT('/burano/v1/environments/{environment}/hibernation/schedule', { params: { path: { environment } }, body: wanted }));

export const dropSchedule = (environment: string): Promise<unknown> =>
  answered(api.DELETE('/burano/v1/environments/{environment}/hibernation/schedule', { params: { path: { environment } }, parseAs: 'text' }));

/** Expressions as one text, with semicolons between them. */
export const asText = (expressions: readonly string[]): string => expressions.join('; ');

export const asList = (text: string): string[] =>
  text
    .split(';')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** The next time at which the environment sleeps or wakes; null for none. */
export function nextOf(hibernation: Hibernation | undefined): { does: 'hibernate' | 'wake'; at: string } | null {
  const schedule = hibernation?.schedule;
  if (!schedule?.delegated) return null;
  const wakes = hibernation?.state !== 'awake';
  const at = wakes ? schedule.next_wake : schedule.next_sleep;
  return at ? { does: wakes ? 'wake' : 'hibernate', at } : null;
}

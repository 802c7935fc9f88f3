// The states of an environment: the results of deployments and actions.
import { queryOptions, type QueryClient } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import { takeUp } from '../draft/draft';

export type State = Schema<'State'>;

/** The states of an environment, the newest first. */
export const statesQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'states'],
    queryFn: () => answered(api.GET('/burano/v1/environments/{environment}/history', { params: { path: { environment } } })),
  });

/** The difference between two states. */
export const differenceQuery = (environment: string, state: number, to: number) =>
  queryOptions({
    queryKey: ['environments', environment, 'difference', state, to],
    queryFn: () =>
      answered(api.GET('/burano/v1/environments/{environment}/history/{state}/changes', { params: { path: { environment, state }, query: { to } } })),
  });

export type Secrets = 'now' | 'then';

/** Makes a former state the caller's draft, which is deployed as any other. */
export async function goBack(client: QueryClient, user: string, environment: string, state: number, secrets: Secrets): Promise<string[]> {
  const opened = await answered(
    api.POST('/burano/v1/environments/{environment}/history/{state}/session', { params: { path: { environment, state } }, body: { secrets } }),
  );
  await takeUp(client, user, environment, opened.id ?? '');
  return opened.notes ?? [];
}

/** The two states that are compared at first: the newest and the one before. */
export const lastTwo = (states: State[]): [number, number] => [states[1]?.number ?? states[0]?.number ?? 0, states[0]?.number ?? 0];

/** The words for the source of a state. */
export interface SourceWords {
  backTo: (state: number) => string;
  action: (name: string) => string;
  draft: string;
  before: string;
}

/** The source of a state: another state, a file, an action or a draft. */
export function sourceOf({ back, file, method }: State, words: SourceWords): string {
  if (back > 0) return words.backTo(back);
  if (file) return file;
  if (!method) return words.before;
  return method === 'deploy' ? words.draft : words.action(method);
}

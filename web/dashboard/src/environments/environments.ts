// Environments, from the API, and their operations.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Environment = Schema<'Environment'>;
export type EnvironmentDetails = Schema<'EnvironmentDetails'>;
/** An environment in the list, with its state. */
export type Overview = Schema<'EnvironmentOverview'>;
/** The state of a component, or of an environment: the worst of its components'. */
export type ComponentState = Schema<'ComponentState'>;
export type ObjectModel = Schema<'ObjectModel'>;

/** All states, the worst first. */
export const stateOrder: readonly ComponentState[] = [
  'failed',
  'unhealthy',
  'deleting',
  'deploying',
  'action failed',
  'asleep',
  'degraded',
  'not deployed',
  'unknown',
  'changed',
  'ready',
  'new',
];

/** Whether an environment changes by itself: then it is requested again and again. */
export const isBusy = (environment: Environment | undefined): boolean =>
  environment?.status === 'deploying' || environment?.status === 'deleting';

const whileBusy = 2_000;

export const environmentsQuery = queryOptions({
  queryKey: ['environments'],
  queryFn: async () => (await answered(api.GET('/burano/v1/environments'))).environments,
  refetchInterval: (query) => (query.state.data?.some(isBusy) ? whileBusy : 30_000),
});

/** An environment as it is deployed, or with a session its draft. */
export const environmentQuery = (environment: string, session?: string) =>
  queryOptions({
    queryKey: ['environments', environment, session ?? 'deployed'],
    queryFn: () =>
      answered(
        api.GET('/v1/environments/{environment}', {
          params: { path: { environment }, header: session ? { 'X-Configuration-Session': session } : {} },
        }),
      ),
    // When a draft opens or ends, its page keeps what it shows until the answer is there: a dialog of a row would vanish with its request.
    placeholderData: (former: EnvironmentDetails | undefined, query?: { queryKey: readonly string[] }) =>
      query?.queryKey[1] === environment ? former : undefined,
    refetchInterval: (query) => (isBusy(query.state.data) ? whileBusy : false),
  });

/** The options of a new environment beside its name; without networks it gets one of its own. */
export interface Wanted {
  /** '' for Burano's own. */
  region: string;
  networks?: Record<string, unknown>;
}

export const createEnvironment = (name: string, { region, networks }: Wanted): Promise<Environment> =>
  answered(api.POST('/v1/environments', { body: { name, ...(region && { region }), ...(networks && { defaultNetworks: networks as Record<string, never> }) } }));

export const renameEnvironment = (environment: string, name: string): Promise<Environment> =>
  answered(api.PUT('/v1/environments/{environment}', { params: { path: { environment } }, body: { name } }));

/** Deletes an environment with all it has in the cloud; with abandon it is only forgotten. */
export const deleteEnvironment = (environment: string, abandon = false): Promise<unknown> =>
  answered(
    api.DELETE('/v1/environments/{environment}', {
      params: { path: { environment }, query: abandon ? { abandon: 'true' } : {} },
      parseAs: 'text',
    }),
  );

export type Deletion = Awaited<ReturnType<typeof askDeletion>>;

const askDeletion = (environment: string) => answered(api.GET('/burano/v1/environments/{environment}/deletion', { params: { path: { environment } } }));

/** The effects of an environment's deletion. They are requested again while a task prevents it. */
export const deletionQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'deletion'],
    queryFn: () => askDeletion(environment),
    staleTime: 0,
    gcTime: 0, // nobody agrees to a former list
    refetchInterval: (query) => (query.state.data?.busy ? whileBusy : false),
  });

/** Which servers hibernating an environment would stop, or waking it would start. */
export const sleepQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'sleep'],
    queryFn: async () => answered(api.GET('/burano/v1/environments/{environment}/hibernation/preview', { params: { path: { environment } } })),
    staleTime: 0,
    gcTime: 0,
  });

/** Begins to hibernate an environment, or to wake it. */
export const fallAsleep = (environment: string, does: 'hibernate' | 'wake') =>
  answered(
    does === 'wake'
      ? api.POST('/burano/v1/environments/{environment}/wake', { params: { path: { environment } } })
      : api.POST('/burano/v1/environments/{environment}/hibernate', { params: { path: { environment } } }),
  );

/** Opens a draft of the environment and returns its id. */
export const openSession = async (environment: string): Promise<string> =>
  (await answered(api.POST('/v1/environments/{environment}/configure', { params: { path: { environment } } }))).id ?? '';

export const deploymentsQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'deployments'],
    queryFn: async () =>
      (await answered(api.GET('/v1/environments/{environment}/deployments', { params: { path: { environment } } }))).deployments ?? [],
  });

/** The class of an object without version and package. */
export const classOf = (object: ObjectModel): string => (object['?']?.type ?? '').split(/[/@]/)[0] ?? '';

/** An object's name, else its header's, else its class. */
export function nameOf(object: ObjectModel): string {
  const own = (object as Record<string, unknown>).name;
  if (typeof own === 'string' && own) return own;
  return object['?']?.name || classOf(object).split('.').pop() || '';
}

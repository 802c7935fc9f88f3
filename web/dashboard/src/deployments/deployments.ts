// Deployments, from the API, and their operations.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Deployment = Schema<'Deployment'>;
export type Step = Schema<'Step'>;
export type DeploymentState = NonNullable<Deployment['state']> | 'abandoned';

export const projectDeploymentsQuery = queryOptions({
  queryKey: ['deployments'],
  queryFn: async () => (await answered(api.GET('/v1/deployments'))).deployments ?? [],
  refetchInterval: (query) => (query.state.data?.some((one) => !one.finished) ? 2_000 : 30_000),
});

export const stepsQuery = (deployment: string, running: boolean) =>
  queryOptions({
    queryKey: ['deployments', deployment, 'steps'],
    queryFn: async () =>
      (await answered(api.GET('/burano/v1/deployments/{deployment}/steps', { params: { path: { deployment } } }))).steps ?? [],
    refetchInterval: running ? 1_000 : false,
  });

export const cancelDeployment = (deployment: string): Promise<unknown> =>
  answered(api.POST('/burano/v1/deployments/{deployment}/cancel', { params: { path: { deployment } } }));

/** Runs a failed deployment again and returns the new one's id. */
export const retryDeployment = async (deployment: string): Promise<string> =>
  (await answered(api.POST('/burano/v1/deployments/{deployment}/retry', { params: { path: { deployment } } }))).task_id ?? '';

/** One deployment with its model. */
export const deploymentQuery = (deployment: string) =>
  queryOptions({
    queryKey: ['deployments', deployment, 'whole'],
    queryFn: () => answered(api.GET('/burano/v1/deployments/{deployment}', { params: { path: { deployment } } })),
    staleTime: Infinity,
  });

/** The newest deployments of an environment, without their models. */
export const recentQuery = (environment: string, limit: number) =>
  queryOptions({
    queryKey: ['environments', environment, 'recent deployments', limit],
    queryFn: async () =>
      (await answered(api.GET('/v1/environments/{environment}/deployments', { params: { path: { environment }, query: { limit } } }))).deployments ?? [],
    refetchInterval: (query) => (query.state.data?.some((one) => !one.finished) ? 3_000 : false),
  });

/**
 * The ids of the steps that decided the end of the deployment: the last one, and before each its dependency that
 * ended last.
 */
export function criticalPath(steps: Step[]): Set<string> {
  const byId = new Map(steps.map((step) => [step.id ?? '', step]));
  const end = (step: Step) => (step.finished ? Date.parse(step.finished) : Infinity);
  const last = (list: Step[]) => list.reduce<Step | undefined>((found, step) => (!found || end(step) > end(found) ? step : found), undefined);
  const path = new Set<string>();
  for (let step = last(steps); step && !path.has(step.id ?? ''); step = last((step.waits_for ?? []).flatMap((id) => byId.get(id) ?? []))) {
    path.add(step.id ?? '');
  }
  // The dependencies of steps that wait for nothing, such as of other objects, are unknown.
  return path.size > 1 ? path : new Set();
}

export interface Dependency {
  /** The ids of two steps: `to` waited for `from`. */
  from: string;
  to: string;
  /** `from` ended last of the dependencies of `to`: `to` could not begin before. */
  decisive: boolean;
}

/** The dependencies among the given steps. */
export function dependencies(steps: Step[]): Dependency[] {
  const byId = new Map(steps.map((step) => [step.id ?? '', step]));
  const end = (id: string) => {
    const finished = byId.get(id)?.finished;
    return finished ? Date.parse(finished) : Infinity;
  };
  return steps.flatMap((step) => {
    const before = (step.waits_for ?? []).filter((id) => byId.has(id));
    const last = before.reduce((found, id) => (found === '' || end(id) > end(found) ? id : found), '');
    return before.map((from) => ({ from, to: step.id ?? '', decisive: from === last }));
  });
}

/** Places a step on the time line of its deployment: percentages of the whole from its first start to its last end, or to now. */
export function placed(steps: Step[], now: number): { from: number; width: number }[] {
  const starts = steps.map((step) => Date.parse(step.started ?? ''));
  const ends = steps.map((step) => (step.finished ? Date.parse(step.finished) : now));
  const first = Math.min(...starts);
  const whole = Math.max(Math.max(...ends) - first, 1);
  return starts.map((start, i) => ({
    from: ((start - first) / whole) * 100,
    width: Math.max((((ends[i] ?? now) - start) / whole) * 100, 0.5),
  }));
}

// The content of a cluster: workloads, pods, their events and logs.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, send, type Schema } from '../api/client';
import { download } from '../api/download';
import type { ClusterLook } from './look';

export type Running = Schema<'Running'>;
export type Workload = Schema<'Workload'>;
export type Pod = Schema<'Pod'>;
export type PodDetails = Schema<'PodDetails'>;
export type WorkloadDetails = Schema<'WorkloadDetails'>;
export type KubernetesEvent = Schema<'KubernetesEvent'>;

export const runningQuery = (environment: string, cluster: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'clusters', cluster, 'running'],
    queryFn: () =>
      answered(api.GET('/burano/v1/environments/{environment}/clusters/{cluster}/running', { params: { path: { environment, cluster } } })),
    refetchInterval: 10_000,
    retry: false,
  });

export const podQuery = (environment: string, cluster: string, namespace: string, pod: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'clusters', cluster, 'pods', namespace, pod],
    queryFn: () =>
      answered(
        api.GET('/burano/v1/environments/{environment}/clusters/{cluster}/pods/{namespace}/{pod}', {
          params: { path: { environment, cluster, namespace, pod } },
        }),
      ),
    refetchInterval: 5_000,
    retry: false,
  });

/** The address of a pod's log; events: as it is written. */
export function logPath(environment: string, cluster: string, namespace: string, pod: string, query: Record<string, string>, events = false): string {
  const parts = [environment, 'clusters', cluster, 'pods', namespace, pod, 'log', ...(events ? ['events'] : [])].map(encodeURIComponent);
  return `/burano/v1/environments/${parts.join('/')}?${new URLSearchParams(query).toString()}`;
}

/** Has the browser save as much of a log as the server gives. */
export async function saveLog(path: string, file: string): Promise<void> {
  const response = await send(path, { method: 'GET' });
  download(file, await response.text(), 'text/plain');
}

export const namespacesOf = (running: Running): string[] =>
  [...new Set([...running.workloads, ...running.pods].map((one) => one.namespace))].sort();

/** The part of a cluster that the address selects. */
export function chosen(running: Running, look: ClusterLook): Running {
  const words = (look.search ?? '').toLowerCase();
  const here = (one: { namespace: string }) => !look.namespace || one.namespace === look.namespace;
  const has = (texts: string[]) => texts.some((text) => text.toLowerCase().includes(words));
  return {
    workloads: running.workloads.filter((one) => here(one) && has([one.name, one.kind, ...one.images]) && !(look.ill && one.ready >= one.wanted)),
    pods: running.pods.filter((one) => here(one) && has([one.name, one.state, one.node, one.owner?.name ?? '']) && !(look.ill && one.healthy)),
  };
}

/** The numbers of ready containers of a pod, of all but init containers, and of restarts. */
export function counts(pod: Pod): { ready: number; all: number; restarts: number } {
  const main = pod.containers.filter((one) => !one.init);
  return {
    ready: main.filter((one) => one.ready).length,
    all: main.length,
    restarts: pod.containers.reduce((sum, one) => sum + one.restarts, 0),
  };
}

/** The container whose log is shown first: the named one, else the pod's first main one. */
export const mainContainer = (pod: Pod, wanted?: string): string =>
  (pod.containers.find((one) => one.name === wanted) ?? pod.containers.find((one) => !one.init) ?? pod.containers[0])?.name ?? '';

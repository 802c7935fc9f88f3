// Workloads of a cluster: the number of their pods, and recreating them.
import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';
import type { Pod, Workload } from './running';

export type Kind = Workload['kind'];

const kinds: readonly string[] = ['Deployment', 'StatefulSet', 'DaemonSet', 'Job'] satisfies Kind[];

export const isWorkload = (kind: string): kind is Kind => kinds.includes(kind);

/** The name of a workload of a cluster, as its address has it. */
export interface WorkloadRef {
  environment: string;
  cluster: string;
  namespace: string;
  kind: Kind;
  workload: string;
}

const path = '/burano/v1/environments/{environment}/clusters/{cluster}/workloads/{namespace}/{kind}/{workload}';

export const workloadQuery = (ref: WorkloadRef) =>
  queryOptions({
    queryKey: ['environments', ref.environment, 'clusters', ref.cluster, 'workloads', ref.namespace, ref.kind, ref.workload],
    queryFn: () => answered(api.GET(path, { params: { path: { ...ref } } })),
    refetchInterval: 5_000,
    retry: false,
  });

export const scaleWorkload = (ref: WorkloadRef, pods: number): Promise<unknown> =>
  answered(api.PUT(`${path}/scale`, { params: { path: { ...ref } }, body: { pods }, parseAs: 'text' }));

export const restartWorkload = (ref: WorkloadRef): Promise<unknown> =>
  answered(api.POST(`${path}/restart`, { params: { path: { ...ref } }, parseAs: 'text' }));

export const recreatePod = (environment: string, cluster: string, namespace: string, pod: string): Promise<unknown> =>
  answered(
    api.POST('/burano/v1/environments/{environment}/clusters/{cluster}/pods/{namespace}/{pod}/recreate', {
      params: { path: { environment, cluster, namespace, pod } },
      parseAs: 'text',
    }),
  );

/** The pods that belong to a workload. */
export const podsOf = (pods: Pod[], { namespace, kind, workload }: Pick<WorkloadRef, 'namespace' | 'kind' | 'workload'>): Pod[] =>
  pods.filter((pod) => pod.namespace === namespace && pod.owner?.kind === kind && pod.owner.name === workload);

/**
 * Whether its number of pods can be changed here: Burano's own workloads are changed by the actions of their
 * components.
 */
export const canScale = (workload: Workload): boolean => !workload.managed && (workload.kind === 'Deployment' || workload.kind === 'StatefulSet');

export const canRestart = (workload: Workload): boolean => workload.kind !== 'Job';

/** Whether something would make a pod again that is ended. */
export const canRecreate = (pod: Pod): boolean => pod.owner !== null && pod.owner.kind !== 'Node' && pod.state !== 'Succeeded' && pod.state !== 'Terminating';

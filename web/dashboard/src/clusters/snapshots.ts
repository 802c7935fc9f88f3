// Snapshots of clusters: Kubernetes' objects at one moment.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Snapshot = Schema<'Snapshot'>;

/** A cluster's snapshots, the newest first; schedule and changes add some. */
export const snapshotsQuery = (environment: string, cluster: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'clusters', cluster, 'snapshots'],
    queryFn: async () => (await answered(api.GET('/burano/v1/snapshots', { params: { query: { environment, cluster } } }))).snapshots,
    refetchInterval: 30_000,
  });

export const takeSnapshot = (environment: string, cluster: string, reason: string): Promise<Snapshot> =>
  answered(
    api.POST('/burano/v1/environments/{environment}/clusters/{cluster}/snapshots', { params: { path: { environment, cluster } }, body: { reason } }),
  );

export const deleteSnapshot = (snapshot: string): Promise<unknown> =>
  answered(api.DELETE('/burano/v1/snapshots/{snapshot}', { params: { path: { snapshot } }, parseAs: 'text' }));

/** Where the browser downloads a snapshot. */
export const contentOf = (snapshot: string): string => `/burano/v1/snapshots/${encodeURIComponent(snapshot)}/content`;

/** The time of the next scheduled snapshot, by the cluster's properties; null without a schedule. */
export function everyHours(object: Record<string, unknown> | undefined): number | null {
  const hours = object?.snapshotEvery ?? 24;
  return typeof hours === 'number' && hours > 0 ? hours : null;
}

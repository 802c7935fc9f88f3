// Upgrades of clusters: the plan, and the progress.
import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';
import type { paths } from '../api/schema';
import type { Cluster } from './clusters';

export type Upgrade = NonNullable<Cluster['upgrade']>;

type Choices = paths['/burano/v1/cloud/{kind}']['get']['responses']['200']['content']['application/json'];
type Image = NonNullable<Choices['images']>[number];

/** The images for upgrades of clusters: images with the property of their Kubernetes version. */
export const upgradeImages = (images: Image[]): Image[] => images.filter((image) => image.kubernetes);

/** The plan of an upgrade to an image; requested anew each time, because clusters change. */
export const planQuery = (environment: string, cluster: string, image: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'clusters', cluster, 'upgrade', image],
    queryFn: () =>
      answered(
        api.GET('/burano/v1/environments/{environment}/clusters/{cluster}/upgrade', {
          params: { path: { environment, cluster }, query: { image } },
        }),
      ),
    gcTime: 0,
    staleTime: 0,
    retry: false,
  });

/** Has an upgrade that runs pause before its next node. */
export const pauseUpgrade = async (environment: string, cluster: string): Promise<void> => {
  await answered(api.POST('/burano/v1/environments/{environment}/clusters/{cluster}/upgrade/pause', { params: { path: { environment, cluster } } }));
};

/** How many nodes of an upgrade are done, of how many. */
export const progressOf = (upgrade: Upgrade): { done: number; all: number } => {
  const nodes = upgrade.nodes ?? [];
  return { done: nodes.filter((node) => node.state === 'done').length, all: nodes.length };
};

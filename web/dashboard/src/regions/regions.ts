// Regions of the cloud: the one that somebody works in, and those of environments.
import { queryOptions, useQuery } from '@tanstack/react-query';

import { answered, api, ApiError } from '../api/client';
import type { paths } from '../api/schema';

type Answer = paths['/burano/v1/cloud/{kind}']['get']['responses']['200']['content']['application/json'];

export type Region = NonNullable<Answer['regions']>[number];

const remembered = 'burano.region';

/** The regions that environments can stand in. */
export const regionsQuery = queryOptions({
  queryKey: ['cloud', 'regions'],
  queryFn: async () => (await answered(api.GET('/burano/v1/cloud/{kind}', { params: { path: { kind: 'regions' } } }))).regions ?? [],
  staleTime: 300_000,
});

/** The region of a choice that was kept: '' for Burano's own, also where the one that was chosen is there no more. */
export const kept = (regions: Region[], choice: string | null): string => (regions.some((one) => one.name === choice && !one.home) ? (choice ?? '') : '');

export const nameOfRegion = (regions: Region[], region: string): string => region || regions.find((one) => one.home)?.name || '';

/** The region that somebody works in, '' for Burano's own: new environments are made there, and images are shown of it. */
export function useRegion(): { regions: Region[]; region: string } {
  const { data: regions } = useQuery(regionsQuery);
  const choice = localStorage.getItem(remembered);
  return { regions: regions ?? [], region: regions ? kept(regions, choice) : (choice ?? '') };
}

/** Chooses a region, '' for Burano's own; everything that is shown of the cloud may be another then. */
export function chooseRegion(region: string): void {
  localStorage.setItem(remembered, region);
  window.location.reload();
}

/** The region that an environment stands in, '' for Burano's own; undefined until it is known. An environment that names none has none to be read. */
export function useRegionOf(environment: string): string | undefined {
  const regions = useQuery(regionsQuery);
  const several = (regions.data?.length ?? 0) > 1;
  const named = useQuery({
    queryKey: ['environments', environment, 'region'],
    queryFn: async () => {
      try {
        const path = { environment, path: 'region' };
        return await answered<unknown>(api.GET('/v1/environments/{environment}/model/{path}', { params: { path } }));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return '';
        throw error;
      }
    },
    enabled: environment !== '' && several,
    staleTime: 300_000,
  });
  if (environment !== '' && (regions.isPending || (several && named.isPending))) return undefined;
  return typeof named.data === 'string' ? named.data : '';
}

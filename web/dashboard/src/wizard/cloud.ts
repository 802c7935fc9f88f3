// The choices from the cloud, and the ones that fit a field.
import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';
import type { paths } from '../api/schema';

export type Answer = paths['/burano/v1/cloud/{kind}']['get']['responses']['200']['content']['application/json'];

export type Flavor = NonNullable<Answer['flavors']>[number];
export type Image = NonNullable<Answer['images']>[number];
export type Network = NonNullable<Answer['networks']>[number];
export type Quota = NonNullable<Answer['quota']>[number];
export type CloudKind = 'flavors' | 'images' | 'keypairs' | 'networks' | 'availability-zones' | 'quota';

/** The objects of a kind in a region, '' for Burano's own. */
export const cloudQuery = (kind: CloudKind, region = '') =>
  queryOptions({
    queryKey: ['cloud', kind, region],
    queryFn: () => answered(api.GET('/burano/v1/cloud/{kind}', { params: { path: { kind }, query: region ? { region } : {} } })),
    staleTime: 30_000,
  });

export interface Limits {
  vcpus?: number;
  ram?: number;
  disk?: number;
}

export interface Requirements {
  least: Limits;
  most: Limits;
}

/** Reads options.requirements of a flavor's field. */
export function requirementsOf(options: Record<string, unknown> | undefined): Requirements {
  const written = (options?.requirements ?? {}) as Record<string, unknown>;
  const number = (key: string) => (written[key] === undefined || written[key] === null ? undefined : Number(written[key]));
  const limits = (edge: 'min' | 'max'): Limits => ({
    vcpus: number(`${edge}_vcpus`),
    ram: number(`${edge}_memory_mb`),
    disk: number(`${edge}_disk`),
  });
  return { least: limits('min'), most: limits('max') };
}

interface Words {
  atLeast: Record<keyof Limits, (n: number) => string>;
  atMost: Record<keyof Limits, (n: number) => string>;
}

const parts = ['vcpus', 'ram', 'disk'] as const;

/** Describes requirements in words. */
export function showRequirements({ least, most }: Requirements, words: Words): string[] {
  return parts.flatMap((part) => [
    ...(least[part] === undefined ? [] : [words.atLeast[part](least[part])]),
    ...(most[part] === undefined ? [] : [words.atMost[part](most[part])]),
  ]);
}

/** The requirements that a flavor does not meet. */
export function missing(flavor: Flavor, { least, most }: Requirements): Requirements {
  const only = (limits: Limits, breaks: (has: number, limit: number) => boolean): Limits =>
    Object.fromEntries(parts.filter((part) => limits[part] !== undefined && breaks(flavor[part] ?? 0, limits[part])).map((part) => [part, limits[part]]));
  return { least: only(least, (has, limit) => has < limit), most: only(most, (has, limit) => has > limit) };
}

export const fits = (flavor: Flavor, requirements: Requirements): boolean => {
  const { least, most } = missing(flavor, requirements);
  return Object.keys(least).length + Object.keys(most).length === 0;
};

/** The images of a type: of just that type, or of a kind of it, as linux.kubernetes is one of linux. */
export function imagesOf(images: Image[], type: unknown): Image[] {
  if (typeof type !== 'string' || type === '') return images;
  return images.filter((image) => image.type === type || image.type?.startsWith(`${type}.`));
}

export type NetworkValue = [string | null, string | null];

export interface NetworkChoice {
  value: NetworkValue;
  network: Network | null;
  subnet: string | null;
}

/** The networks that a field offers; the one without network is "Auto". */
export function networkChoices(networks: Network[], options: Record<string, unknown> | undefined): NetworkChoice[] {
  const choices: NetworkChoice[] = options?.allow_auto === false ? [] : [{ value: [null, null], network: null, subnet: null }];
  const wanted = typeof options?.filter === 'string' ? options.filter : '';
  const named = (network: Network): boolean => {
    if (!wanted) return true;
    try {
      return new RegExp(wanted).test(network.name ?? '');
    } catch {
      return network.name === wanted;
    }
  };
  for (const network of networks.filter((one) => !one.external && named(one))) {
    const id = network.id ?? '';
    if (options?.include_subnets === false) choices.push({ value: [id, null], network, subnet: null });
    else for (const subnet of network.subnets ?? []) choices.push({ value: [id, subnet], network, subnet });
  }
  return choices;
}

/** Shows memory of MiB in the unit that reads best. */
export const showMemory = (mib: number): string => (mib >= 1024 && mib % 512 === 0 ? `${mib / 1024} GiB` : `${mib} MiB`);

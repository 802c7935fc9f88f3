// A draft's share of the project's quota.
import { walk } from '../environments/objects';
import type { Flavor, Quota } from './cloud';

export type Demand = Partial<Record<NonNullable<Quota['resource']>, number>>;

/** Counts servers, their processors and memory in a model: a server is an object with a flavor. Objects whose ids are known count not. */
export function demandOf(model: unknown, flavors: Flavor[], known: ReadonlySet<string> = new Set()): Required<Pick<Demand, 'instances' | 'cores' | 'ram'>> {
  const demand = { instances: 0, cores: 0, ram: 0 };
  const byName = new Map(flavors.flatMap((flavor) => [[flavor.id ?? '', flavor] as const, [flavor.name ?? '', flavor] as const]));
  walk(model, (object) => {
    const name = (object as Record<string, unknown>).flavor;
    if (typeof name !== 'string' || name === '' || known.has(object['?']?.id ?? '')) return;
    demand.instances += 1;
    demand.cores += byName.get(name)?.vcpus ?? 0;
    demand.ram += byName.get(name)?.ram ?? 0;
  });
  return demand;
}

/** The ids of all objects of a model. */
export function idsOf(model: unknown): Set<string> {
  const ids = new Set<string>();
  walk(model, (object) => ids.add(object['?']?.id ?? ''));
  return ids;
}

export interface Row {
  resource: NonNullable<Quota['resource']>;
  used: number;
  more: number;
  /** null: there is none. */
  limit: number | null;
  over: boolean;
}

/** The lines of the quota that a demand touches. */
export function rowsOf(quota: Quota[], demand: Demand): Row[] {
  return quota.flatMap((line) => {
    const more = line.resource ? demand[line.resource] : undefined;
    if (!line.resource || more === undefined) return [];
    const used = line.used ?? 0;
    const limit = line.limit === undefined || line.limit < 0 ? null : line.limit;
    return [{ resource: line.resource, used, more, limit, over: more > 0 && limit !== null && used + more > limit }];
  });
}

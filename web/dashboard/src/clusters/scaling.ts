// The size of a cluster: how large it is, how large it may be, and the action that makes it another.
import { actionsOf, type Action } from '../actions/actions';
import type { ObjectModel } from '../environments/environments';
import type { Cluster } from './clusters';

export type Part = 'nodes' | 'gateways';

export interface Size {
  now: number;
  /** As long as the cluster's list of them. */
  most: number;
}

const properties = { nodes: ['minionNodes', 'nodeCount', 'minion'], gateways: ['gatewayNodes', 'gatewayCount', 'gateway'] } as const;

/**
 * The present and the maximum number of a part: from the cluster's state, else from its model. Minions of groups, and
 * machines beside the cloud, are no part of it.
 */
export function sizeOf(part: Part, object: ObjectModel, cluster: Cluster | undefined): Size {
  const [list, count, role] = properties[part];
  const model = object as Record<string, unknown>;
  const most = Array.isArray(model[list]) ? model[list].length : 0;
  const running = cluster?.nodes?.filter((node) => node.role === role && !node.external && !node.set?.labels?.['burano.io/group']).length;
  const planned = typeof model[count] === 'number' ? model[count] : most;
  return { now: running || planned, most };
}

/** The action that changes a size, with how many it is called; null when nothing changes or the cluster does not offer it. */
export function scaling(part: Part, object: ObjectModel, now: number, wanted: number): { action: Action; count: number } | null {
  if (wanted === now) return null;
  const method = `scale${part === 'nodes' ? 'Nodes' : 'Gateways'}${wanted > now ? 'Up' : 'Down'}`;
  const action = actionsOf(object).find((each) => each.method === method);
  return action ? { action, count: Math.abs(wanted - now) } : null;
}

/** Whether an object can be made larger or smaller at all. */
export const scales = (object: ObjectModel): boolean => actionsOf(object).some((action) => /^scale(Nodes|Gateways)(Up|Down)$/.test(action.method));

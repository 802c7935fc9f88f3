// What a model is made of, as nodes and edges.
import { classOf, nameOf, type ComponentState, type ObjectModel } from '../environments/environments';
import { walk } from '../environments/objects';

export type Kind = 'application' | 'server' | 'network' | 'volume' | 'address' | 'part';

export type NodeState = 'ok' | 'changing' | 'warning' | 'failed' | 'waiting' | 'none';

export interface GraphNode {
  id: string;
  name: string;
  kind: Kind;
  state: NodeState;
  /** The id of the component that it belongs to; its own of a component; '' for what the environment holds by itself. */
  group: string;
  /** The id of what holds it; '' for nothing that is shown. */
  owner: string;
  object: ObjectModel | null;
}

export interface GraphEdge {
  id: string;
  source: string;
  target: string;
  kind: 'owns' | 'refers' | 'reached';
  /** The property that refers. */
  name: string;
}

export interface Topology {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** What is known of an environment besides its model. */
export interface Known {
  busy: boolean;
  /** The states of its components, by their ids. */
  states: Record<string, ComponentState>;
}

type Model = Record<string, unknown>;

const record = (value: unknown): Model | null => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Model) : null);

/** Reads the topology of an environment's model. */
export function topologyOf(model: unknown, known: Known): Topology {
  const environment = record(model) ?? {};
  const nodes = new Map<string, GraphNode>();
  const add = (object: ObjectModel, owner: ObjectModel | null, group: string) => {
    const id = object['?']?.id ?? '';
    if (!id || nodes.has(id)) return;
    const kind = kindOf(object, group === id);
    nodes.set(id, { id, name: nameOf(object), kind, state: stateOf(object, kind, id, known), group, owner: owner?.['?']?.id ?? '', object });
  };
  for (const service of Array.isArray(environment.services) ? environment.services : []) {
    const group = (service as ObjectModel)['?']?.id ?? '';
    walk(service, (object, owner) => add(object, owner, group));
  }
  for (const network of networksOf(environment)) add(network, null, '');
  const edges: GraphEdge[] = [];
  for (const node of [...nodes.values()]) {
    if (nodes.has(node.owner)) edges.push({ id: `${node.owner}>${node.id}`, source: node.owner, target: node.id, kind: 'owns', name: '' });
    edges.push(...references(node, nodes));
    addAddress(node, nodes, edges);
  }
  joinNetwork(nodes, edges);
  return { nodes: [...nodes.values()], edges };
}

/** The networks of the environment, those of its regions where it has any: before the first deployment they stand beside. */
function networksOf(environment: Model): ObjectModel[] {
  const found: ObjectModel[] = [];
  const regions = Object.values(record(environment.regions) ?? {}).filter((region) => record(region));
  const places = regions.length > 0 ? regions.map((region) => record(region)?.defaultNetworks) : [environment.defaultNetworks];
  for (const place of places) walk(place, (object) => found.push(object));
  return found;
}

function kindOf(object: ObjectModel, component: boolean): Kind {
  const name = classOf(object);
  if (component) return 'application';
  if (/Network$/.test(name)) return 'network';
  if (/Volume$/.test(name)) return 'volume';
  if (/Instance$/.test(name) || 'flavor' in object) return 'server';
  if (/(Shared|Floating)Ip$/i.test(name)) return 'address';
  return 'part';
}

/** How the picture shows the state of a component. */
const looks: Record<ComponentState, NodeState> = {
  failed: 'failed',
  unhealthy: 'failed',
  deleting: 'changing',
  deploying: 'changing',
  'action failed': 'warning',
  asleep: 'waiting',
  degraded: 'warning',
  'not deployed': 'waiting',
  unknown: 'none',
  changed: 'ok',
  ready: 'ok',
  new: 'waiting',
};

function stateOf(object: ObjectModel, kind: Kind, id: string, known: Known): NodeState {
  const state = known.states[id];
  if (kind === 'application') return state ? looks[state] : 'none';
  if (kind === 'server') {
    const { ipAddresses, openstackId } = object as Model;
    return (Array.isArray(ipAddresses) && ipAddresses.length > 0) || openstackId ? 'ok' : known.busy ? 'changing' : 'waiting';
  }
  return 'none';
}

/** The objects whose ids stand in an object's own properties, not in those of what it holds. */
function references(node: GraphNode, nodes: Map<string, GraphNode>): GraphEdge[] {
  const edges = new Map<string, GraphEdge>();
  const look = (name: string, value: unknown) => {
    if (typeof value === 'string') {
      if (value !== node.id && nodes.has(value)) edges.set(value, { id: `${node.id}~${value}`, source: node.id, target: value, kind: 'refers', name });
    } else if (Array.isArray(value)) value.forEach((item) => look(name, item));
    else if (record(value) && !record(record(value)?.['?'])) for (const [key, item] of Object.entries(value as Model)) look(key, item);
  };
  for (const [name, value] of Object.entries(node.object ?? {})) if (name !== '?') look(name, value);
  return [...edges.values()];
}

/** A floating address is a node of its own, at what it leads to. */
function addAddress(node: GraphNode, nodes: Map<string, GraphNode>, edges: GraphEdge[]): void {
  const address = (node.object as Model | null)?.floatingIpAddress;
  if (typeof address !== 'string' || !address) return;
  const id = `address ${address}`;
  if (!nodes.has(id)) nodes.set(id, { id, name: address, kind: 'address', state: 'ok', group: node.group, owner: node.id, object: null });
  edges.push({ id: `${id}>${node.id}`, source: id, target: node.id, kind: 'reached', name: 'floatingIpAddress' });
}

/** Of so many servers of a component that use the environment's network, each has a line to it; of more their component has one. */
const manyServers = 12;

/** Servers that use the environment's network, and do not say so by an id, are joined with it. */
function joinNetwork(nodes: Map<string, GraphNode>, edges: GraphEdge[]): void {
  const network = [...nodes.values()].find((node) => node.kind === 'network' && node.group === '');
  if (!network) return;
  const joined = new Set(edges.filter((edge) => nodes.get(edge.target)?.kind === 'network').map((edge) => edge.source));
  const groups = new Map<string, string[]>();
  for (const node of nodes.values()) {
    if (node.kind !== 'server' || joined.has(node.id)) continue;
    const networks = record((node.object as Model).networks);
    if (networks && networks.useEnvironmentNetwork === false) continue;
    groups.set(node.group, [...(groups.get(node.group) ?? []), node.id]);
  }
  for (const [group, servers] of groups) {
    for (const source of servers.length > manyServers ? [group] : servers) {
      edges.push({ id: `${source}~${network.id}`, source, target: network.id, kind: 'refers', name: 'networks' });
    }
  }
}

// Kubernetes clusters: how they are now.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, send, type Schema } from '../api/client';
import { download } from '../api/download';

export type Cluster = Schema<'Cluster'>;

/** The state of a cluster; requested again while it is shown. */
export const clusterQuery = (environment: string, cluster: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'clusters', cluster],
    queryFn: () =>
      answered(api.GET('/burano/v1/environments/{environment}/clusters/{cluster}', { params: { path: { environment, cluster } } })),
    refetchInterval: 10_000,
    retry: false,
  });

/** The options of a kubeconfig; the server chooses omitted ones. */
export interface KubeconfigWish {
  group?: string;
  namespace?: string;
  lifetime?: string;
  sign_in?: 'keystone';
}

/** Has the browser save a kubeconfig. */
export async function saveKubeconfig(environment: string, cluster: string, name: string, wish: KubeconfigWish = {}): Promise<void> {
  const query = new URLSearchParams(Object.entries(wish).filter(([, value]) => value)).toString();
  const path = `/burano/v1/environments/${encodeURIComponent(environment)}/clusters/${encodeURIComponent(cluster)}/kubeconfig`;
  const response = await send(query ? `${path}?${query}` : path, { method: 'GET' });
  download(fileOf(name), await response.text(), 'application/yaml');
}

/** The groups of Kubernetes that a kubeconfig may be for, by the rules of the policy that its caller passes. */
export function groupsFor(rules: string[]): string[] {
  const known: [string, string][] = [
    ['get_kubeconfig', 'burano:admins'],
    ['get_editor_kubeconfig', 'burano:editors'],
    ['get_reader_kubeconfig', 'burano:readers'],
  ];
  return known.filter(([rule]) => rules.includes(rule)).map(([, group]) => group);
}

/** The public key by which machines that are no servers of the cloud let Burano in. */
export const sshKeyQuery = (environment: string, cluster: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'clusters', cluster, 'ssh-key'],
    queryFn: () =>
      answered(api.GET('/burano/v1/environments/{environment}/clusters/{cluster}/ssh-key', { params: { path: { environment, cluster } } })),
    staleTime: Infinity,
    retry: false,
  });

export type JoinToken = Schema<'JoinToken'>;

/** Makes a token with which one machine becomes a node. */
export const makeJoinToken = (environment: string, cluster: string): Promise<JoinToken> =>
  answered(
    api.POST('/burano/v1/environments/{environment}/clusters/{cluster}/join-tokens', { params: { path: { environment, cluster } }, body: {} }),
  );

/** The command for the machine that joins by a token. */
export const joinCommand = (server: string, token: JoinToken): string => `burano node join --server ${server} --token ${token.token}`;

/** The name of a cluster's kubeconfig as a file. */
export const fileOf = (name: string): string => `${name.replace(/[^\w.-]+/g, '-').replace(/^[-.]+/, '') || 'cluster'}.kubeconfig`;

export type Node = Schema<'ClusterNode'>;

/** The actions of a cluster that are about one node and make sense for it now. */
export function deedsOf(node: Node): string[] {
  const anywhere = node.external ? ['rebootNode', 'removeExternalNode'] : ['rebootNode', 'replaceNode'];
  if (node.role === 'master') return [...(node.state === 'locked' ? ['unlockNode'] : ['lockNode', 'swactNode']), ...anywhere];
  if (node.role !== 'minion') return [node.state === 'locked' ? 'unlockNode' : 'lockNode', ...anywhere];
  const state = { '': ['cordonNode', 'lockNode'], cordoned: ['uncordonNode', 'lockNode'], locked: ['unlockNode'] }[node.state ?? ''];
  return ['setNode', 'labelNode', 'taintNode', ...state, ...anywhere]; // former names are of clusters that a former release has deployed
}

/** A taint as kubectl shows it. */
export const showTaint = ({ key, value, effect }: Schema<'Taint'>): string => `${key}${value ? `=${value}` : ''}:${effect}`;

/** How many nodes take pods, how many gateways are there, how many members of etcd are well. */
export function counted(cluster: Cluster) {
  const nodes = (cluster.nodes ?? []).filter((node) => node.role === 'minion');
  const gateways = (cluster.nodes ?? []).filter((node) => node.role === 'gateway');
  const members = cluster.members ?? [];
  return {
    nodes: { good: nodes.filter((node) => node.ready).length, all: nodes.length },
    gateways: { good: gateways.filter((node) => node.reachable).length, all: gateways.length },
    members: { good: members.filter((member) => member.healthy).length, all: members.length },
  };
}

import { describe, expect, it } from 'vitest';

import { counted, deedsOf, fileOf, groupsFor, joinCommand, showTaint, type Cluster } from './clusters';
import { scaling, sizeOf } from './scaling';

const cluster: Cluster = {
  name: 'demo',
  healthy: false,
  problems: ['Node kube-3 is not reachable'],
  nodes: [
    { name: 'kube-1', role: 'master', reachable: true, ready: null },
    { name: 'kube-2', role: 'minion', reachable: true, ready: true },
    { name: 'kube-3', role: 'minion', reachable: false, ready: null },
    { name: 'gateway-1', role: 'gateway', reachable: true, ready: null },
  ],
  members: [
    { name: 'kube-1', healthy: true, learner: false },
    { name: 'kube-2', healthy: false, learner: true },
  ],
};

const actions = Object.fromEntries(['scaleNodesUp', 'scaleNodesDown', 'scaleGatewaysUp'].map((name) => [`c_${name}`, { name, enabled: true }]));
const object = { '?': { id: 'c', type: 'K', _actions: actions }, nodeCount: 1, minionNodes: [{}, {}, {}], gatewayCount: 1, gatewayNodes: [{}, {}] };

it('counts what of a cluster is well', () => {
  expect(counted(cluster)).toEqual({ nodes: { good: 1, all: 2 }, gateways: { good: 1, all: 1 }, members: { good: 1, all: 2 } });
});

it('offers what a node can take', () => {
  expect(deedsOf({ role: 'minion', state: '' })).toContain('lockNode');
  expect(deedsOf({ role: 'minion', state: 'cordoned' })).toContain('uncordonNode');
  expect(deedsOf({ role: 'master', state: '' })).toEqual(['lockNode', 'swactNode', 'rebootNode', 'replaceNode']);
  expect(deedsOf({ role: 'gateway', state: 'locked' })).toEqual(['unlockNode', 'rebootNode', 'replaceNode']);
  expect(deedsOf({ role: 'minion', state: 'locked' })).toEqual(['setNode', 'labelNode', 'taintNode', 'unlockNode', 'rebootNode', 'replaceNode']);
  expect(deedsOf({ role: 'minion', state: 'locked', external: true })).toEqual(['setNode', 'labelNode', 'taintNode', 'unlockNode', 'rebootNode', 'removeExternalNode']);
  expect([showTaint({ key: 'gpu', value: 'yes', effect: 'NoSchedule' }), showTaint({ key: 'gpu', effect: 'NoExecute' })]).toEqual(['gpu=yes:NoSchedule', 'gpu:NoExecute']);
});

it('offers the rights in a kubeconfig that the policy allows', () => {
  expect(groupsFor(['get_kubeconfig', 'get_editor_kubeconfig', 'get_reader_kubeconfig'])).toEqual(['burano:admins', 'burano:editors', 'burano:readers']);
  expect(groupsFor(['get_reader_kubeconfig', 'show_environment'])).toEqual(['burano:readers']);
});

it('names the file of a kubeconfig after its cluster', () => {
  expect(fileOf('my cluster/1')).toBe('my-cluster-1.kubeconfig');
  expect(fileOf('../..')).toBe('cluster.kubeconfig');
});

describe('the size of a cluster', () => {
  it('is what runs, and at most what the model lists', () => {
    expect(sizeOf('nodes', object, cluster)).toEqual({ now: 2, most: 3 });
    expect(sizeOf('nodes', object, undefined)).toEqual({ now: 1, most: 3 });
    expect(sizeOf('gateways', object, cluster)).toEqual({ now: 1, most: 2 });
  });
  it('does not count the minions of groups', () => {
    const grouped = { name: 'workers-1', role: 'minion' as const, set: { labels: { 'burano.io/group': 'workers' }, taints: [] } };
    const machine = { name: 'lab-1', role: 'minion' as const, external: true };
    expect(sizeOf('nodes', object, { ...cluster, nodes: [...(cluster.nodes ?? []), grouped, machine] })).toEqual({ now: 2, most: 3 });
  });
  it('changes by the action for its direction', () => {
    expect(scaling('nodes', object, 1, 3)).toMatchObject({ action: { id: 'c_scaleNodesUp' }, count: 2 });
    expect(scaling('nodes', object, 3, 2)).toMatchObject({ action: { id: 'c_scaleNodesDown' }, count: 1 });
    expect(scaling('nodes', object, 3, 3)).toBeNull();
    expect(scaling('gateways', object, 2, 1)).toBeNull();
  });
});

it('has the command that is run on a machine', () => {
  const token = { id: 'a1', token: 'a1.SECRET', cluster_id: 'c', state: 'open', user_name: 'demo', created: '', expires_at: '', node: '', address: '', task_id: '' } as const;
  expect(joinCommand('https://burano.example.org', token)).toBe('burano node join --server https://burano.example.org --token a1.SECRET');
});

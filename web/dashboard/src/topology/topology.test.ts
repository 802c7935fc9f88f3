import { describe, expect, it } from 'vitest';

import { topologyOf, type Known } from './graph';
import { cell, layout } from './layout';

const still: Known = { busy: false, states: { cluster: 'ready' } };
const server = (id: string, more: object = {}) => ({ '?': { id, type: 'io.murano.resources.LinuxMuranoInstance/0.0.0@io.murano' }, name: id, flavor: 'm1', ...more });
const node = (id: string, more: object = {}) => ({ '?': { id: `node-${id}`, type: 'io.example.Node' }, instance: server(`vm-${id}`, more) });
const network = (id: string) => ({ '?': { id, type: 'io.murano.resources.NeutronNetwork' }, name: 'net' });
const model = {
  '?': { id: 'env', type: 'io.murano.Environment' },
  defaultNetworks: { environment: network('before'), flat: null },
  regions: { '': 'region', local: { '?': { id: 'region', type: 'io.murano.CloudRegion' }, defaultNetworks: { environment: network('net') } } },
  services: [
    {
      '?': { id: 'cluster', type: 'io.example.Cluster' },
      name: 'cluster',
      nodes: [node('1', { ipAddresses: ['10.0.0.4'], floatingIpAddress: '203.0.113.7' }), node('2', { joinedNetworks: [{ network: 'net' }] })],
    },
    { '?': { id: 'pod', type: 'io.example.Pod' }, name: 'pod', kubernetesCluster: 'cluster', note: 'pod' },
  ],
};

describe('the topology of a model', () => {
  const { nodes, edges } = topologyOf(model, { ...still, states: { cluster: 'ready', pod: 'failed' } });
  const by = Object.fromEntries(nodes.map((each) => [each.id, each]));
  it('has the objects of its components, its network and floating addresses, and neither environment nor region', () => {
    expect(Object.keys(by).sort()).toEqual(['address 203.0.113.7', 'cluster', 'net', 'node-1', 'node-2', 'pod', 'vm-1', 'vm-2']);
  });
  it('knows what they are, how they are, and to which component they belong', () => {
    expect([by.cluster?.kind, by['vm-1']?.kind, by.net?.kind, by['node-1']?.kind]).toEqual(['application', 'server', 'network', 'part']);
    expect([by['vm-1']?.state, by['vm-2']?.state, by.pod?.state, by.cluster?.state]).toEqual(['ok', 'waiting', 'failed', 'ok']);
    expect([by['vm-1']?.group, by['address 203.0.113.7']?.group, by.net?.group]).toEqual(['cluster', 'cluster', '']);
  });
  it('has edges of what holds, refers and is reached, each once', () => {
    const shown = edges.map((edge) => `${edge.source} ${edge.kind} ${edge.target}`);
    expect(shown).toContain('cluster owns node-1');
    expect(shown).toContain('pod refers cluster');
    expect(shown).toContain('address 203.0.113.7 reached vm-1');
    expect(shown).toContain('vm-1 refers net');
    expect(shown.filter((edge) => edge === 'vm-2 refers net')).toHaveLength(1);
    expect(new Set(shown).size).toBe(shown.length);
    expect(shown).not.toContain('pod refers pod');
  });
  it('has one line to the network from a component of many servers', () => {
    const nodes = Array.from({ length: 20 }, (_, n) => node(String(n)));
    const many = topologyOf({ ...model, services: [{ '?': { id: 'c', type: 'io.example.Cluster' }, nodes }] }, still);
    expect(many.edges.filter((edge) => edge.target === 'net').map((edge) => edge.source)).toEqual(['c']);
  });
  it('is empty without a model', () => {
    expect(topologyOf(undefined, still)).toEqual({ nodes: [], edges: [] });
  });
});

describe('the layout', () => {
  const services = Array.from({ length: 3 }, (_, c) => ({
    '?': { id: `c${c}`, type: 'io.example.Cluster' },
    nodes: Array.from({ length: 50 }, (_, n) => node(`${c}-${n}`)),
  }));
  const large = topologyOf({ services }, still);
  it('of 300 objects is made at once, and nothing lies on anything else', () => {
    expect(large.nodes.length).toBeGreaterThan(300);
    const start = performance.now();
    const places = [...layout(large.nodes).values()];
    expect(performance.now() - start).toBeLessThan(200);
    expect(places).toHaveLength(large.nodes.length);
    for (const [i, a] of places.entries()) {
      for (const b of places.slice(i + 1)) expect(Math.abs(a.x - b.x) >= cell.width || Math.abs(a.y - b.y) >= cell.height).toBe(true);
    }
  });
  it('is about as wide as a screen', () => {
    const places = [...layout(large.nodes).values()];
    const width = Math.max(...places.map((place) => place.x));
    const height = Math.max(...places.map((place) => place.y));
    expect(width / height).toBeGreaterThan(0.7);
    expect(width / height).toBeLessThan(3);
  });
  it('keeps what belongs to one component apart from the others', () => {
    const places = layout(large.nodes);
    const box = (group: string) => {
      const own = large.nodes.filter((each) => each.group === group).map((each) => places.get(each.id)!);
      return { left: Math.min(...own.map((p) => p.x)), right: Math.max(...own.map((p) => p.x)), top: Math.min(...own.map((p) => p.y)), bottom: Math.max(...own.map((p) => p.y)) };
    };
    const [a, b] = [box('c0'), box('c1')];
    expect(a.right < b.left || b.right < a.left || a.bottom < b.top || b.bottom < a.top).toBe(true);
  });
  it('puts what holds above what it holds', () => {
    const places = layout(topologyOf(model, still).nodes);
    expect(places.get('cluster')!.y).toBeLessThan(places.get('node-1')!.y);
    expect(places.get('node-1')!.y).toBeLessThan(places.get('vm-1')!.y);
  });
});

describe('few parts', () => {
  it('lie side by side below what holds them', () => {
    const part = (id: string) => ({ '?': { id, type: 'io.example.Part' }, name: id });
    const places = layout(topologyOf({ '?': { id: 'env', type: 'io.murano.Environment' }, services: [{ '?': { id: 'app', type: 'io.example.App' }, name: 'app', left: part('left'), right: part('right') }] }, still).nodes);
    expect(places.get('left')?.y).toBe(places.get('right')?.y);
    expect(places.get('left')?.y).toBeGreaterThan(places.get('app')?.y ?? 0);
  });
});

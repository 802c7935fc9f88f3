import { describe, expect, it } from 'vitest';

import { endpointsOf, failuresOf, findObject, idsIn, isSecret, linkOf, type Component, type ComponentRun } from './components';

const model = {
  services: [
    {
      '?': { id: 'cluster', type: 'io.example.Cluster' },
      nodes: [{ '?': { id: 'node', type: 'io.example.Node' }, instance: { '?': { id: 'server', type: 'io.example.Server' } } }],
    },
  ],
};

describe('an object of a model', () => {
  it('is found with all that hold it, the outermost first', () => {
    const found = findObject(model, 'server');
    expect(found?.owners.map((owner) => owner['?']?.id)).toEqual(['cluster', 'node']);
    expect(findObject(model, 'cluster')?.owners).toEqual([]);
    expect(findObject(model, 'other')).toBeNull();
  });
  it('has the ids of all that it holds', () => {
    expect(idsIn(findObject(model, 'node')!.object)).toEqual(['node', 'server']);
  });
});

it('knows names of secrets as the server does', () => {
  const secrets = ['adminPassword', 'pass', 'authToken', 'clientSecret', 'private', 'trustId', 'myCredentials', 'apiKey', 'API_KEY'];
  expect(secrets.filter((name) => !isSecret(name))).toEqual([]);
  expect(['key', 'publicKey', 'keyPair', 'keyname', 'name', '?', ''].filter(isSecret)).toEqual([]);
});

describe('a value', () => {
  it('is a link when it is a web address or a floating one', () => {
    expect(linkOf('url', 'https://example.org/a')).toBe('https://example.org/a');
    expect(linkOf('floatingIpAddress', '203.0.113.7')).toBe('http://203.0.113.7/');
    expect(linkOf('address', '10.0.0.4')).toBeNull();
  });
  it('is never a link that runs something', () => {
    expect(linkOf('url', 'javascript:alert(1)')).toBeNull();
    expect(linkOf('url', 'http://a b')).toBeNull();
  });
});

it('finds where an application answers from outside', () => {
  const endpoint = { address: '192.0.2.1', port: 80, protocol: 'TCP', scope: 'public' };
  const object = {
    '?': { id: 'app', type: 'io.example.App' },
    applicationEndpoints: [
      endpoint,
      endpoint,
      { ...endpoint, address: '192.0.2.2', port: 443 },
      { ...endpoint, protocol: 'UDP', port: 53 },
      { ...endpoint, scope: 'internal', address: 'app.default.svc.cluster.local' },
      { ...endpoint, address: 'no address' },
      null,
    ],
  };
  expect(endpointsOf(object)).toEqual(['http://192.0.2.1:80/', 'https://192.0.2.2:443/']);
  expect(endpointsOf({ '?': { id: 'other', type: 'io.example.App' } })).toEqual([]);
});

describe('the failures of an environment', () => {
  const run = (id: string, more: Partial<ComponentRun> = {}): ComponentRun => ({
    deployment_id: id,
    kind: 'deployment',
    object_id: null,
    method: null,
    failed: true,
    text: 'no',
    finished: `2026-11-29T10:00:0${id}`,
    ...more,
  });
  const component = (id: string, more: Partial<Component> = {}): Component => ({
    id,
    type: 'io.example.A',
    name: id,
    state: 'ready',
    change: null,
    deployment: run('1', { failed: false }),
    failures: [],
    findings: {},
    ...more,
  });
  it('are those of its components and its own, the newest first', () => {
    const components = [component('a', { deployment: run('2') }), component('b'), component('c', { failures: [run('4', { kind: 'action', method: 'grow' })] })];
    expect(failuresOf({ deployment: run('3'), failures: [], components }).map((one) => one.component + one.run.deployment_id)).toEqual(['c4', '3', 'a2']);
  });
  it('are none where all is deployed', () => {
    expect(failuresOf({ deployment: null, failures: [], components: [component('a'), component('b')] })).toEqual([]);
  });
});

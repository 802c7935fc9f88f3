import { describe, expect, it } from 'vitest';

import { endpointsOf, findObject, idsIn, isSecret, linkOf } from './components';

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

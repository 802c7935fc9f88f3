import { expect, it } from 'vitest';

import { inNames, namesOf } from './objects';

it('finds all objects of a model, also those inside of others', () => {
  const model = {
    services: [
      { '?': { id: 'a', type: 'io.example.App' }, name: 'shop', instance: { '?': { id: 'b', type: 'io.murano.resources.Instance' }, name: 'vm' } },
      { note: 'no object', list: [{ '?': { id: 'c', type: 'io.example.Part/1.0' } }] },
    ],
  };
  expect([...namesOf(model)]).toEqual([
    ['a', 'shop'],
    ['b', 'vm'],
    ['c', 'Part'],
  ]);
  expect(namesOf(null).size).toBe(0);
});

it('writes a path by the names of its objects', () => {
  const server = { '?': { id: 's', type: 'io.example.Server' }, name: 'web-1', ports: [80] };
  const node = { '?': { id: 'n', type: 'io.example.Node' }, instance: server };
  const model = { services: [{ '?': { id: 'c', type: 'io.example.Cluster/1.0.0@io.example' }, name: 'shop', nodes: [node], settings: { dns: {} } }] };
  expect(inNames('services[0].nodes[0].instance.ports[0]', model)).toBe('shop, Node 1, web-1: ports[0]');
  expect(inNames('services[0].settings.dns', model)).toBe('shop: settings.dns');
  expect(inNames('services[0]', model)).toBe('shop');
  expect(inNames('services[3].name', model)).toBe('services[3].name');
  expect(inNames('name', undefined)).toBe('name');
});

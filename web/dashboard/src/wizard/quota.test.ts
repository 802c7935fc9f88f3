import { expect, it } from 'vitest';

import { demandOf, idsOf, rowsOf } from './quota';

const flavors = [
  { id: '1', name: 'small', vcpus: 1, ram: 1024 },
  { id: '2', name: 'large', vcpus: 4, ram: 8192 },
];
const server = (id: string, flavor: string) => ({ '?': { id, type: 'io.murano.resources.LinuxMuranoInstance' }, flavor });

it('counts the servers of a model, wherever they are', () => {
  const model = { '?': { id: 'a', type: 'io.App' }, flavorless: 1, nodes: [{ '?': { id: 'b', type: 'io.Node' }, instance: server('c', 'small') }, server('d', '2')] };
  expect(demandOf(model, flavors)).toEqual({ instances: 2, cores: 5, ram: 9216 });
  expect(demandOf(model, flavors, new Set(['c']))).toEqual({ instances: 1, cores: 4, ram: 8192 });
  expect(demandOf(server('e', 'unknown'), flavors)).toEqual({ instances: 1, cores: 0, ram: 0 });
  expect([...idsOf(model)]).toEqual(['a', 'b', 'c', 'd']);
});

it('compares with the quota', () => {
  const quota = [
    { resource: 'instances', used: 9, limit: 10 },
    { resource: 'cores', used: 9, limit: -1 },
    { resource: 'ram', used: 5000, limit: 4000 },
    { resource: 'ports', used: 1, limit: 1 },
  ] as const;
  expect(rowsOf([...quota], { instances: 2, cores: 5, ram: 0 })).toEqual([
    { resource: 'instances', used: 9, more: 2, limit: 10, over: true },
    { resource: 'cores', used: 9, more: 5, limit: null, over: false },
    { resource: 'ram', used: 5000, more: 0, limit: 4000, over: false },
  ]);
});

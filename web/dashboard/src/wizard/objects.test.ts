import { expect, it } from 'vitest';

import { candidates, providersIn } from './objects';

const object = (id: string, type: string, more = {}) => ({ '?': { id, type }, ...more });

it('finds objects of the class, of any version, wherever they are', () => {
  const model = [object('a', 'io.Cluster/1.0@io.Cluster', { nodes: [object('b', 'io.Node')] }), object('c', 'io.Other')];
  expect(candidates(model, ['io.Cluster'], []).map((one) => one['?']?.id)).toEqual(['a']);
  expect(candidates(model, ['io.Node', 'io.Other'], []).map((one) => one['?']?.id)).toEqual(['b', 'c']);
});

it('finds objects that are what a package is for which declares the class', () => {
  const provider = { id: 'p', type: 'Application' as const, fully_qualified_name: 'io.MySQL', class_definitions: ['io.MySQL', 'io.Database', 'io.MySQL.Part'] };
  const model = [object('a', 'io.MySQL'), object('b', 'io.MySQL.Part')];
  expect(candidates(model, ['io.Database'], [provider]).map((one) => one['?']?.id)).toEqual(['a']);
});

it('offers applications only, each once', () => {
  expect(providersIn([{ id: 'a', type: 'Application' }, { id: 'a', type: 'Application' }, { id: 'b', type: 'Library' }, { id: 'c', type: 'Application', enabled: false }])).toEqual([
    { id: 'a', type: 'Application' },
  ]);
});

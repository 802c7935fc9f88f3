import { expect, it } from 'vitest';

import { namesOf } from './objects';

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

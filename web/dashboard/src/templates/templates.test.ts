import { expect, test } from 'vitest';

import { copied } from './templates';

test('copied applications have ids of their own, and what refers to them follows', () => {
  let count = 0;
  const services = [
    { '?': { id: 'a', type: 'io.App', name: 'app', status: 'ready', _actions: { x: {} } }, database: 'b', port: 80, empty: null },
    { '?': { id: 'b', type: 'io.Db' }, host: { '?': { id: 'c', type: 'io.Host' }, names: ['a', 'other'] } },
  ];
  expect(copied(services, () => `new${++count}`)).toEqual([
    { '?': { id: 'new1', type: 'io.App', name: 'app' }, database: 'new2', port: 80, empty: null },
    { '?': { id: 'new2', type: 'io.Db' }, host: { '?': { id: 'new3', type: 'io.Host' }, names: ['new1', 'other'] } },
  ]);
});

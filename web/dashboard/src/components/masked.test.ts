import { expect, it } from 'vitest';

import { masked } from './masked';

it('masks texts by the nearest key, and lists by theirs', () => {
  const value = { token: ['a', ['b'], 1], users: [{ pass: 'c', name: 'd' }], secrets: { user: 'e' }, none: null, password: '' };
  expect(masked(value, '*')).toEqual({ token: ['*', ['*'], 1], users: [{ pass: '*', name: 'd' }], secrets: { user: 'e' }, none: null, password: '' });
});

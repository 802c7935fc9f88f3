import { expect, it } from 'vitest';

import { mayChange } from './projectRole';

it('lets managers and administrators change how Burano works in a project', () => {
  expect(mayChange({ admin: false, roles: ['member', 'reader'] })).toBe(false);
  expect(mayChange({ admin: false, roles: ['manager', 'member'] })).toBe(true);
  expect(mayChange({ admin: true, roles: [] })).toBe(true);
});

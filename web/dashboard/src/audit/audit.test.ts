import { expect, test } from 'vitest';

import { queryOf } from './audit';
import { readLook } from './look';

test('an address is read, and what makes no sense in it passed over', () => {
  const look = readLook({ outcome: 'maybe', action: 'create', since: 'yesterday', until: '2026-11-22T10:00', user: 7 });
  expect(look).toMatchObject({ action: 'create', until: '2026-11-22T10:00' });
  expect([look.outcome, look.since, look.user]).toEqual([undefined, undefined, undefined]);
});

test('the server is asked in its own words, and in UTC', () => {
  const local = '2026-11-22T10:00';
  expect(queryOf({ since: local, user: 'u', after: 'a,b' })).toEqual({ limit: 50, since: new Date(local).toISOString(), user_id: 'u', marker: 'b' });
});

import { expect, it } from 'vitest';

import { expiry, inDays } from './delegation';

const now = Date.parse('2026-11-22T10:00:00Z');

it('gives a delegation a time that the API takes', () => {
  expect(inDays(30, now)).toBe('2026-12-22T10:00:00Z');
});

it('knows which delegations end soon', () => {
  expect(expiry({ expires: null }, now)).toBe('never');
  expect(expiry({ expires: '2027-11-22T10:00:00Z' }, now)).toBe('later');
  expect(expiry({ expires: '2026-11-30T10:00:00Z' }, now)).toBe('soon');
  expect(expiry({ expires: '2026-11-21T10:00:00Z' }, now)).toBe('over');
});

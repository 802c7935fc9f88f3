import { expect, test } from 'vitest';

import { changedLimits, fullness, severity } from './quotas';

test('a quota is as full as what is used of it', () => {
  expect(fullness({ limit: 8, used: 2 })).toBe(25);
  expect(fullness({ limit: 0, used: 0 })).toBe(100);
  expect(fullness({ limit: 2, used: 5 })).toBe(100);
  expect(fullness({ limit: -1, used: 5 })).toBeNull();
  expect([null, 79, 80, 100].map(severity)).toEqual([undefined, undefined, 'warning', 'danger']);
});

test('only limits that are changed are sent, and only whole numbers', () => {
  const now = { environments: { limit: 10 }, packages: { limit: -1 } };
  expect(changedLimits({ environments: '12', packages: '-1' }, now)).toEqual({ environments: 12 });
  expect(changedLimits({ environments: '1.5' }, now)).toBeNull();
  expect(changedLimits({ environments: '-2' }, now)).toBeNull();
  expect(changedLimits({ environments: '' }, now)).toBeNull();
});

import { describe, expect, it } from 'vitest';

import { parseTime, showAge, showSpan } from './time';

describe('times of the API', () => {
  it('are UTC where they do not say so', () => {
    expect(parseTime('2026-11-21T10:00:00').toISOString()).toBe('2026-11-21T10:00:00.000Z');
    expect(parseTime('2026-11-21T10:00:00+02:00').toISOString()).toBe('2026-11-21T08:00:00.000Z');
  });
  it('are told by the largest unit', () => {
    const now = Date.parse('2026-11-21T12:00:00Z');
    expect(showAge('2026-11-21T11:57:00', 'en', now)).toBe('3 minutes ago');
    expect(showAge('2026-11-19T11:57:00', 'en', now)).toBe('2 days ago');
    expect(showAge(null, 'en', now)).toBe('');
  });
  it('have spans for people', () => {
    expect([0.42, 42, 65, 3725].map(showSpan)).toEqual(['0.4 s', '42 s', '1 min 5 s', '1 h 2 min']);
  });
});

import { describe, expect, it } from 'vitest';

import { asList, asText, nextOf, type Hibernation } from './schedule';

describe('the schedule of an environment', () => {
  it('is one text for each kind of time', () => {
    expect(asList(' 0 20 * * 1-5;0 14 * * 6 ; ')).toEqual(['0 20 * * 1-5', '0 14 * * 6']);
    expect(asList(asText(['0 7 * * 1', '0 8 * * 2']))).toEqual(['0 7 * * 1', '0 8 * * 2']);
    expect(asList('')).toEqual([]);
  });

  it('shows when it wakes while it sleeps, and when it sleeps while it is awake', () => {
    const schedule = {
      zone: 'Europe/Berlin',
      sleep: ['0 20 * * 1-5'],
      wake: ['0 7 * * 1-5'],
      user_name: 'demo',
      updated: '2026-11-27T10:00:00Z',
      next_sleep: '2026-11-30T20:00:00+01:00',
      next_wake: '2026-11-30T07:00:00+01:00',
      delegated: true,
    };
    const at = (state: Hibernation['state'], change: Partial<typeof schedule> | null = {}): Hibernation => ({
      state,
      since: null,
      deployment_id: null,
      servers: [],
      schedule: change && { ...schedule, ...change },
    });
    expect(nextOf(at('asleep'))).toEqual({ does: 'wake', at: schedule.next_wake });
    expect(nextOf(at('awake'))).toEqual({ does: 'hibernate', at: schedule.next_sleep });
    expect(nextOf(at('awake', { delegated: false }))).toBeNull();
    expect(nextOf(at('awake', null))).toBeNull();
    expect(nextOf(undefined)).toBeNull();
  });
});

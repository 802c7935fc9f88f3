import { expect, it } from 'vitest';

import { criticalPath, placed } from './deployments';

it('places steps on the time line of their deployment', () => {
  const at = (second: number) => new Date(second * 1000).toISOString();
  const steps = [
    { started: at(0), finished: at(5) },
    { started: at(5), finished: null },
  ];
  expect(placed(steps, 10_000)).toEqual([
    { from: 0, width: 50 },
    { from: 50, width: 50 },
  ]);
  expect(placed([], 0)).toEqual([]);
});

it('finds the steps that decided how long it took', () => {
  const step = (id: string, finished: string | null, ...waits: string[]) => ({ id, finished, waits_for: waits });
  const steps = [
    step('boot', '2026-01-01T00:00:02Z'),
    step('keys', '2026-01-01T00:00:01Z'),
    step('etcd', '2026-01-01T00:00:04Z', 'keys', 'boot'),
    step('images', '2026-01-01T00:00:03Z', 'boot'),
    step('api', null, 'etcd', 'gone'),
  ];
  expect([...criticalPath(steps)]).toEqual(['api', 'etcd', 'boot']);
  expect(criticalPath([step('alone', null)]).size).toBe(0);
  expect(criticalPath([]).size).toBe(0);
});

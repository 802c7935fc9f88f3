import { expect, it } from 'vitest';

import { placed } from './deployments';

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

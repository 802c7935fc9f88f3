import { expect, test } from 'vitest';

import { dependencies, type Step } from './deployments';
import { lineBetween } from './Links';

const step = (id: string, finished: string, ...waits_for: string[]): Step => ({ id, name: id, finished, waits_for });

test('of what a step waited for, what ended last is decisive', () => {
  const steps = [step('a', '2026-11-22T06:00:00Z'), step('b', '2026-11-22T06:00:02Z'), step('c', '', 'a', 'b', 'not shown')];
  expect(dependencies(steps)).toEqual([
    { from: 'a', to: 'c', decisive: false },
    { from: 'b', to: 'c', decisive: true },
  ]);
});

test('a line leads from the end of one bar to the beginning of another', () => {
  const box = (left: number, right: number, top: number) => ({ left, right, top, bottom: top + 10 });
  const origin = { left: 100, top: 50 };
  expect(lineBetween(box(110, 150, 60), box(160, 200, 100), origin)).toBe('M50 20V55H60');
  expect(lineBetween(box(110, 150, 60), box(150, 200, 100), origin)).toBe('M50 20V50');
  expect(lineBetween(box(110, 150, 100), box(160, 200, 60), origin)).toBe('M50 50V15H60');
});

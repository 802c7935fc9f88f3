import { expect, it } from 'vitest';

import type { Step } from './deployments';
import { groupsOf, isOpenAtFirst, lasted, spanOf } from './groups';

const step = (name: string, error: string | null = null, finished: string | null = '2026-01-01T00:00:01Z'): Step => ({ id: name, name, error, finished, object: 'kube' });

it('steps are put together by server, else by object', () => {
  const groups = groupsOf([step('murano-kube-1: connect'), step('servers'), step('murano-kube-1: etcd', 'no'), step('murano-kube-2: connect', null, null)], () => 'kube');
  expect(groups.map(({ name, steps, failed, isRunning }) => [name, steps.length, failed, isRunning])).toEqual([
    ['murano-kube-1', 2, 1, false],
    ['kube', 1, 0, false],
    ['murano-kube-2', 1, 0, true],
  ]);
});

it('groups are folded after the end unless a step of them failed', () => {
  const groups = groupsOf([step('a: one'), step('b: one', 'no')], () => '');
  expect(groups.map((group) => isOpenAtFirst(group, groups, false))).toEqual([false, true]);
  expect(groups.map((group) => isOpenAtFirst(group, groups, true))).toEqual([true, true]);
  expect(isOpenAtFirst(groups[0]!, [groups[0]!], false)).toBe(true);
});

it('a group covers the bars of its steps', () => {
  expect(spanOf([{ from: 10, width: 5 }, { from: 20, width: 30 }])).toEqual({ from: 10, width: 40 });
});

it('a group lasts from its first start to its last end, or until now', () => {
  const at = (started: number, finished: number | null): Step => ({ started: new Date(started).toISOString(), finished: finished === null ? null : new Date(finished).toISOString() });
  expect(lasted([at(1_000, 3_000), at(2_000, 9_000)], 0)).toBe(8);
  expect(lasted([at(1_000, 3_000), at(2_000, null)], 5_000)).toBe(4);
});

import { expect, it } from 'vitest';

import type { Action } from './actions';
import { grouped, kindOf } from './groups';

const action = (method: string, more: Partial<Action> = {}): Action => ({ id: method, method, title: method, description: '', deprecated: '', ...more });

it.each([
  ['scale', 'nodes'],
  ['setNode', 'nodes'],
  ['upgradeBack', 'versions'],
  ['restoreClaim', 'data'],
  ['backUp', 'data'],
  ['renewCertificates', 'security'],
  ['defragmentEtcd', 'others'],
  ['scaleNodesDown', 'losses'],
  ['deleteUnusedVolumes', 'losses'],
  ['restore', 'losses'],
  ['recoverQuorum', 'losses'],
])('%s is in the group %s', (method, kind) => {
  expect(kindOf(action(method))).toBe(kind);
});

it('a deprecated action is in the last group', () => {
  expect(kindOf(action('removeNode', { deprecated: 'use scale' }))).toBe('deprecated');
});

it('actions are found by all words, in titles, descriptions and methods', () => {
  const all = [action('scale', { title: 'Scale', description: 'The group gets this many nodes' }), action('snapshot', { title: 'Take a snapshot' })];
  expect(grouped(all, '').map(([kind, list]) => [kind, list.length])).toEqual([['nodes', 1], ['data', 1]]);
  expect(grouped(all, 'NODES group')).toEqual([['nodes', [all[0]]]]);
  expect(grouped(all, 'nothing')).toEqual([]);
});

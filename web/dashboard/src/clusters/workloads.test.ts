import { expect, test } from 'vitest';

import type { Pod, Workload } from './running';
import { canRecreate, canRestart, canScale, isWorkload, podsOf } from './workloads';

const pod = (part: Partial<Pod>): Pod => ({
  namespace: 'default', name: 'web-1', state: 'Running', healthy: true, message: '', node: '', address: '', owner: { kind: 'Deployment', name: 'web' }, object: '', created: '', containers: [], ...part,
});
const workload = (part: Partial<Workload>): Workload => ({
  kind: 'Deployment', namespace: 'default', name: 'web', wanted: 1, ready: 1, images: [], created: '', managed: false, object: '', ...part,
});

test('the pods of a workload are those of its kind, name and namespace', () => {
  const own = pod({});
  const others = [pod({ namespace: 'other' }), pod({ owner: { kind: 'StatefulSet', name: 'web' } }), pod({ owner: null })];
  expect(podsOf([own, ...others], { namespace: 'default', kind: 'Deployment', workload: 'web' })).toEqual([own]);
});

test('what Burano makes, and what has no number of pods, is not scaled', () => {
  expect(canScale(workload({}))).toBe(true);
  expect(canScale(workload({ kind: 'StatefulSet' }))).toBe(true);
  expect(canScale(workload({ managed: true }))).toBe(false);
  expect(canScale(workload({ kind: 'DaemonSet' }))).toBe(false);
  expect(canRestart(workload({ kind: 'DaemonSet' }))).toBe(true);
  expect(canRestart(workload({ kind: 'Job' }))).toBe(false);
});

test('only a pod that something makes again is ended', () => {
  expect(canRecreate(pod({}))).toBe(true);
  expect(canRecreate(pod({ owner: null }))).toBe(false);
  expect(canRecreate(pod({ owner: { kind: 'Node', name: 'n' } }))).toBe(false);
  expect(canRecreate(pod({ state: 'Succeeded' }))).toBe(false);
  expect(isWorkload('ReplicaSet')).toBe(false);
});

import { expect, it } from 'vitest';

import { agreeing, areGiven, needsLook, without, type Consent, type Plan } from './plan';

const nothing: Plan = { changes: [], means: [], notes: [], losses: [], kubernetes: [], problems: [], consents: [], plan: '1:' };
const claim = (message: string): Consent => ({ object_id: 'p1', name: 'db', message, claims: ['data'] });
const leaves = claim('pod db is removed, and leaves in the cluster with its data: claim data (10Gi, made 3 May 2026)');
const cluster: Consent = { object_id: 'c1', name: 'kube', message: 'cluster kube (c1) is destroyed, with everything that is in it', claims: [] };

it('is to be seen before a deployment, unless it only adds and changes', () => {
  expect(needsLook(nothing)).toBe(false);
  expect(needsLook({ ...nothing, changes: [{ change: 'added' }, { change: 'changed' }], notes: ['claim data keeps 10Gi'] })).toBe(false);
  expect(needsLook({ ...nothing, changes: [{ change: 'removed' }] })).toBe(true);
  expect(needsLook({ ...nothing, consents: [leaves] })).toBe(true);
  expect(needsLook({ ...nothing, means: ['node murano-kube-2 is replaced'] })).toBe(true);
  expect(needsLook({ ...nothing, losses: [{ kind: 'server', object_id: 'i1', object: 'web', cloud_id: 's1' }] })).toBe(true);
  expect(needsLook({ ...nothing, problems: [{ path: 'services[0]', class: 'X', message: 'no' }] })).toBe(true);
});

it('does not repeat what consents say', () => {
  expect(without([leaves.message, 'stack s is made anew'], [leaves])).toEqual(['stack s is made anew']);
});

it('is agreed to consent by consent, and a consent whose words change is to be given again', () => {
  const first = agreeing(new Set(), leaves, true);
  expect(areGiven([], new Set())).toBe(true);
  expect(areGiven([leaves, cluster], first)).toBe(false);
  const both = agreeing(first, cluster, true);
  expect(areGiven([leaves, cluster], both)).toBe(true);
  expect(areGiven([claim('pod db is removed, and leaves two claims')], both)).toBe(false);
  expect(areGiven([leaves, cluster], agreeing(both, cluster, false))).toBe(false);
  expect(areGiven([leaves], first), 'the former answer stays').toBe(true);
});

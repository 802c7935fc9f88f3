import { expect, test } from 'vitest';

import { readLook } from './look';
import { chosen, counts, logPath, mainContainer, namespacesOf, type Pod, type Running } from './running';

const container = (name: string, init = false, ready = true, restarts = 0) => ({ name, image: 'i', init, state: 'Running', message: '', ready, restarts, started: null });
const pod = (name: string, part: Partial<Pod> = {}): Pod => ({
  namespace: 'default', name, state: 'Running', healthy: true, message: '', node: 'minion-1', address: '', object: '', owner: null, created: '', containers: [container('main')], ...part,
});
const running: Running = {
  workloads: [
    { kind: 'Deployment', namespace: 'default', name: 'web', wanted: 2, ready: 1, images: ['web:1'], created: '', managed: false, object: '' },
    { kind: 'DaemonSet', namespace: 'kube-system', name: 'calico', wanted: 1, ready: 1, images: ['calico:3'], created: '', managed: false, object: '' },
  ],
  pods: [
    pod('web-1', { owner: { kind: 'Deployment', name: 'web' }, state: 'CrashLoopBackOff', healthy: false }),
    pod('calico-x', { namespace: 'kube-system' }),
  ],
};
const names = (look: Parameters<typeof chosen>[1]) => {
  const { workloads, pods } = chosen(running, look);
  return [...workloads, ...pods].map((one) => one.name);
};

test('what runs is found by namespace, words and whether it is well', () => {
  expect(namespacesOf(running)).toEqual(['default', 'kube-system']);
  expect(names({})).toEqual(['web', 'calico', 'web-1', 'calico-x']);
  expect(names({ namespace: 'kube-system' })).toEqual(['calico', 'calico-x']);
  expect(names({ search: 'WEB' })).toEqual(['web', 'web-1']);
  expect(names({ search: 'crash' })).toEqual(['web-1']);
  expect(names({ ill: true })).toEqual(['web', 'web-1']);
  expect(readLook({ tab: 'running', namespace: '', ill: 'x', search: 3 })).toEqual({ tab: 'running', ill: true });
});

test('containers that prepare a pod are not counted among those that should run', () => {
  const one = pod('a', { containers: [container('prepare', true, false, 2), container('main', false, true, 1), container('side', false, false)] });
  expect(counts(one)).toEqual({ ready: 1, all: 2, restarts: 3 });
  expect([mainContainer(one), mainContainer(one, 'side'), mainContainer(one, 'gone')]).toEqual(['main', 'side', 'main']);
});

test('a name cannot leave the address of a log', () => {
  expect(logPath('e', 'c', 'n', '../x?y', { container: 'a&b' }, true)).toBe('/burano/v1/environments/e/clusters/c/pods/n/..%2Fx%3Fy/log/events?container=a%26b');
});

import { expect, test } from 'vitest';

import { progressOf, upgradeImages } from './upgrade';

test('only images that say which Kubernetes they hold are offered', () => {
  expect(upgradeImages([{ id: 'a', kubernetes: 'v1.36.3' }, { id: 'b', kubernetes: '' }, { id: 'c' }])).toEqual([{ id: 'a', kubernetes: 'v1.36.3' }]);
});

test('an upgrade is as far as its nodes are', () => {
  expect(progressOf({ nodes: [{ state: 'done' }, { state: 'replacing' }, { state: 'waiting' }] })).toEqual({ done: 1, all: 3 });
  expect(progressOf({})).toEqual({ done: 0, all: 0 });
});

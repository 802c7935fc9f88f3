import { expect, it } from 'vitest';

import { lastTwo, sourceOf, type State } from './past';

const state = (number: number, rest: Partial<State> = {}): State => ({
  number,
  deployment: '',
  object_id: '',
  method: 'deploy',
  user_id: 'u',
  user_name: 'Ann',
  file: '',
  digest: '',
  back: 0,
  packages: [],
  images: [],
  bytes: 1,
  created: '2026-11-27T06:00:00',
  ...rest,
});

it('compares the newest state with the one before', () => {
  expect(lastTwo([state(7), state(5), state(2)])).toEqual([5, 7]);
  expect(lastTwo([state(1)])).toEqual([1, 1]);
  expect(lastTwo([])).toEqual([0, 0]);
});

it('names the source of a state', () => {
  const words = { backTo: (number: number) => `to ${number}`, action: (name: string) => `action ${name}`, draft: 'draft', before: 'before' };
  expect(sourceOf(state(3, { back: 1, file: 'a.yaml' }), words)).toBe('to 1');
  expect(sourceOf(state(3, { file: 'a.yaml' }), words)).toBe('a.yaml');
  expect(sourceOf(state(3, { method: 'grow' }), words)).toBe('action grow');
  expect(sourceOf(state(3), words)).toBe('draft');
  expect(sourceOf(state(1, { method: '' }), words)).toBe('before');
});

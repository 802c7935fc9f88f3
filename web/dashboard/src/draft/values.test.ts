import { expect, it } from 'vitest';

import { named, shortValue } from './values';

it('shows values shortly, and says where there is none', () => {
  expect([null, undefined, ''].map((value) => shortValue(value))).toEqual([null, null, null]);
  expect([0, false, 'a text', [1, 'b'], { a: null }].map((value) => shortValue(value))).toEqual(['0', 'false', 'a text', '[1,"b"]', '{"a":null}']);
  expect(shortValue('abcdef', 3)).toBe('abc…');
});

it('calls objects by their names', () => {
  const names = new Map([
    ['1', 'one'],
    ['2', ''],
  ]);
  expect(named(['1', '2', '3'], names)).toEqual(['one', '2', '3']);
  expect(named('1', names)).toBe('one');
  expect(named(5, names)).toBe(5);
});

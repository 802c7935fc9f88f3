import { expect, test } from 'vitest';

import { de } from './de';
import { en } from './en';

/** All texts with their paths; functions are called, so that their results are checked. */
function texts(value: unknown, path: string): [string, unknown][] {
  if (typeof value === 'function') {
    const samples = Array.from({ length: value.length }, () => '3');
    return [[path, (value as (...args: unknown[]) => unknown)(...samples)]];
  }
  if (typeof value === 'object' && value !== null) return Object.entries(value).flatMap(([key, inner]) => texts(inner, `${path}.${key}`));
  return [[path, value]];
}

/** An object without a state has no word for it. */
const wordless = ['.topology.states.none'];

test.each([
  ['English', en],
  ['German', de],
])('no text is empty: %s', (_name, language) => {
  for (const [path, text] of texts(language, '')) {
    expect(typeof text, path).toBe('string');
    if (!wordless.includes(path)) expect(String(text).trim(), path).not.toBe('');
    expect(String(text), path).not.toMatch(/undefined|\[object|NaN/);
  }
});

test('both languages have the same texts', () => {
  const paths = (language: unknown) => texts(language, '').map(([path]) => path);
  expect(paths(de).sort()).toEqual(paths(en).sort());
});

import { expect, test } from 'vitest';

import { freeName } from './names';

test('an application is called like its package, and another one has a number', () => {
  expect(freeName('Hello', [])).toBe('Hello');
  expect(freeName('Hello', ['Hello', 'Hello 3'])).toBe('Hello 2');
  expect(freeName('Hello', ['Hello', 'Hello 2'])).toBe('Hello 3');
});

import { expect, test } from 'vitest';

import { back, markerOf, onward, pageNumber } from './paging';

test('pages are gone through forward and back', () => {
  const second = onward(undefined, 'a');
  const third = onward(second, 'b');
  expect([markerOf(undefined), markerOf(second), markerOf(third)]).toEqual([undefined, 'a', 'b']);
  expect([back(third), back(second)]).toEqual(['a', undefined]);
  expect([pageNumber(undefined), pageNumber(third)]).toEqual([1, 3]);
});

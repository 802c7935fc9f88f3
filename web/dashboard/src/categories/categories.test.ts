import { expect, test } from 'vitest';

import { inOrder } from './categories';

test('categories with packages come first, then by name', () => {
  const list = [{ name: 'Web' }, { name: 'Games', package_count: 1 }, { name: 'Big Data', package_count: 0 }, { name: 'Apps', package_count: 2 }];
  expect(inOrder(list, 'en').map((one) => one.name)).toEqual(['Apps', 'Games', 'Big Data', 'Web']);
});

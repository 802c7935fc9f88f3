import { expect, test } from 'vitest';

import { showBytes } from './bytes';

test('sizes are written in their unit', () => {
  expect([showBytes(0, 'en'), showBytes(1023, 'en'), showBytes(1536, 'de'), showBytes(5 * 1024 ** 3, 'en')]).toEqual(['0 B', '1,023 B', '1,5 KiB', '5 GiB']);
});

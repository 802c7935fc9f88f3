import { expect, test } from 'vitest';

import { metadataOf } from './keptData';

test('metadata is an object in JSON', () => {
  expect(metadataOf('{"owner": "billing", "tags": ["a"]}')).toEqual({ owner: 'billing', tags: ['a'] });
  for (const wrong of ['', '[]', 'null', '"a"', '{a: 1}']) expect(metadataOf(wrong)).toBeNull();
});

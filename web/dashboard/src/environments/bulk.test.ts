import { expect, it } from 'vitest';

import { forEach, namesOfAll } from './bulk';

const three = ['a', 'b', 'c'].map((name) => ({ id: name, name }));

it('does something for each environment, and says which were refused', async () => {
  const done: string[] = [];
  const refused = await forEach(three, async (one) => {
    if (one.name === 'b') throw new Error('is deploying');
    done.push(one.name ?? '');
  });
  expect(done).toEqual(['a', 'c']);
  expect(refused.map((one) => [one.environment.name, one.error.message])).toEqual([['b', 'is deploying']]);
});

it('names environments in one line', () => {
  expect(namesOfAll(three)).toBe('a, b, c');
});

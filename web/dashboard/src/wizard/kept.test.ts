import { expect, it } from 'vitest';

import { forget, keyOf, read, write } from './kept';

it('keeps what was filled in until it is forgotten', () => {
  const kept = new Map<string, string>();
  const memory = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
  const key = keyOf('e', 'p');
  expect(read(memory, key)).toEqual({ name: '', values: {} });
  write(memory, key, { name: 'n', values: { f: { a: 1 } } });
  expect(read(memory, key)).toEqual({ name: 'n', values: { f: { a: 1 } } });
  expect(read(memory, keyOf('e', 'q'))).toEqual({ name: '', values: {} });
  memory.setItem(key, '{"other":1}');
  expect(read(memory, key)).toEqual({ name: '', values: {} });
  forget(memory, key);
  expect(kept.size).toBe(0);
});

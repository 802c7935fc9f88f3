import { beforeEach, describe, expect, it } from 'vitest';

import { unwatch, watch, watchedIn } from './watched';

const memory = new Map<string, string>();
const storage = { getItem: (key: string) => memory.get(key) ?? null, setItem: (key: string, value: string) => void memory.set(key, value) };

describe('deployments that are watched', () => {
  beforeEach(() => memory.clear());
  it('are remembered once, until they are not watched any more', () => {
    watch(storage, 'a');
    watch(storage, 'b');
    watch(storage, 'a');
    expect(watchedIn(storage)).toEqual(['a', 'b']);
    unwatch(storage, 'a');
    unwatch(storage, 'other');
    expect(watchedIn(storage)).toEqual(['b']);
  });
  it('are the newest ones where there are too many', () => {
    for (let i = 0; i < 60; i++) watch(storage, String(i));
    expect(watchedIn(storage)).toHaveLength(50);
    expect(watchedIn(storage)[0]).toBe('10');
  });
  it('are none where the memory has something else', () => {
    for (const broken of ['{', '{}', '[1]']) {
      memory.set('burano.watched', broken);
      expect(watchedIn(storage)).toEqual([]);
    }
  });
});

import { describe, expect, it } from 'vitest';

import { ApiError } from '../api/client';
import { countChanges, draftOf, recall, remember } from './draft';

describe('a draft', () => {
  it('is what the server says of its session', () => {
    expect(draftOf('s', { state: 'opened' })).toEqual({ session: 's', state: 'opened' });
    expect(draftOf('s', { state: 'deployed' })).toBeNull();
    expect(draftOf('s', new ApiError(403, 'is invalid', ''))).toEqual({ session: 's', state: 'outdated' });
    expect(draftOf('s', new ApiError(404, 'not found', ''))).toBeNull();
  });
  it('is not forgotten because the server cannot answer', () => {
    expect(() => draftOf('s', new ApiError(503, 'busy', ''))).toThrow('busy');
    expect(() => draftOf('s', new TypeError('connection lost'))).toThrow('connection lost');
  });
  it('is remembered for one user and environment', () => {
    const kept = new Map<string, string>();
    const memory = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    };
    remember(memory, 'u', 'e', 's');
    expect([recall(memory, 'u', 'e'), recall(memory, 'u', 'f'), recall(memory, 'v', 'e')]).toEqual(['s', '', '']);
    remember(memory, 'u', 'e', '');
    expect(kept.size).toBe(0);
  });
});

describe('changes', () => {
  it('are counted by application', () => {
    expect(
      countChanges([
        { change: 'added', path: 'services[2]' },
        { change: 'added', path: 'services[2].instance' },
        { change: 'changed', path: 'services[0]', properties: ['name'] },
        { change: 'added', path: 'services[0].nodes[1]' },
        { change: 'removed', path: 'services[1]' },
        { change: 'removed', path: 'services[1].instance' },
        { change: 'removed', path: 'services[3].instance' },
        { change: 'changed', path: '', properties: ['services'] },
      ]),
    ).toEqual({ added: 1, changed: 2, removed: 1 });
  });
  it('may be none', () => {
    expect(countChanges([])).toEqual({ added: 0, changed: 0, removed: 0 });
  });
});

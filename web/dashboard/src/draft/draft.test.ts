import { describe, expect, it } from 'vitest';

import { countChanges, draftOf, othersThan, recall, remember, type OpenDraft } from './draft';

describe('a draft', () => {
  const open: OpenDraft[] = [
    { id: 's', user_id: 'u', user_name: 'me', own: true, outdated: false, rejected: false, version: 1, created: '', updated: '' },
    { id: 'old', user_id: 'u', user_name: 'me', own: true, outdated: true, rejected: false, version: 0, created: '', updated: '' },
    { id: null, user_id: 'v', user_name: 'Carla', own: false, outdated: false, rejected: false, version: 1, created: '', updated: '' },
  ];
  it('is what the server says of its session', () => {
    expect(draftOf('s', open)).toEqual({ session: 's', state: 'opened' });
    expect(draftOf('old', open)).toEqual({ session: 'old', state: 'outdated' });
    expect(draftOf('gone', open)).toBeNull();
  });
  it('has others beside it', () => {
    expect(othersThan({ session: 's', state: 'opened' }, open).map((one) => one.id)).toEqual(['old', null]);
    expect(othersThan(null, open)).toHaveLength(3);
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

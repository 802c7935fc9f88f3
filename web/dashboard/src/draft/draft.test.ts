import { describe, expect, it } from 'vitest';

import { countChanges, draftOf, othersThan, recall, refusedOf, remember, type Draft, type OpenDraft } from './draft';

describe('a draft', () => {
  const open: OpenDraft[] = [
    { id: 's', user_id: 'u', user_name: 'me', own: true, outdated: false, rejected: false, version: 1, created: '', updated: '' },
    { id: 'old', user_id: 'u', user_name: 'me', own: true, outdated: true, rejected: false, version: 0, created: '', updated: '' },
    { id: null, user_id: 'v', user_name: 'Carla', own: false, outdated: false, rejected: false, version: 1, created: '', updated: '' },
  ];
  it('is what the server says of its session', () => {
    expect(draftOf('s', open)).toEqual({ session: 's', state: 'opened', rejected: false });
    expect(draftOf('old', open)).toEqual({ session: 'old', state: 'outdated', rejected: false });
    expect(draftOf('gone', open)).toBeNull();
  });
  it('has others beside it', () => {
    expect(othersThan({ session: 's', state: 'opened', rejected: false }, open).map((one) => one.id)).toEqual(['old', null]);
    expect(othersThan(null, open)).toHaveLength(3);
  });
  it('that was refused is shown by itself: the newest of the user, unless it is the present one or out of date', () => {
    const refused = (id: string, part: Partial<OpenDraft> = {}): OpenDraft => ({ ...open[0]!, id, rejected: true, updated: '2026-11-27T10:00:00', ...part });
    const all = [...open, refused('first'), refused('second', { updated: '2026-11-27T11:00:00' }), refused('late', { outdated: true, updated: '2026-11-27T12:00:00' })];
    const others: OpenDraft = refused('', { id: null, own: false, updated: '2026-11-27T13:00:00' });
    const takenUp: Draft = { session: 'second', state: 'opened', rejected: true };
    expect(refusedOf(null, open)).toBeNull();
    expect(refusedOf(null, [...all, others])?.id).toBe('second');
    expect(refusedOf(takenUp, all)?.id).toBe('first');
    expect(othersThan(null, all).map((one) => one.id)).toEqual(['s', 'old', null, 'first', 'late']);
    expect(othersThan(takenUp, all).map((one) => one.id)).toEqual(['s', 'old', null, 'late']);
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

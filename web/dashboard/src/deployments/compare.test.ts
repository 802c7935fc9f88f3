import { describe, expect, it } from 'vitest';

import { changesBetween, comparedSteps, verdict } from './compare';

const step = (object: string, name: string, seconds: number | null) => ({ object, name, class: 'io.example.Node', seconds });

describe('the steps of two runs', () => {
  const rows = comparedSteps(
    [step('a', 'install', 10), step('a', 'start', 5), step('a', 'start', 1), step('b', 'old', 2)],
    [step('a', 'install', 40), step('a', 'start', 6), step('c', 'new', 1), step('c', 'runs', null)],
  );
  it('are side by side, those that differ most first, each once', () => {
    expect(rows[0]).toEqual({ object: 'a', class: 'io.example.Node', name: 'install', before: 10, after: 40 });
    expect(rows.map((row) => row.name)).toEqual(['install', 'old', 'new', 'start', 'runs']);
  });
  it('became slower, faster, stayed, came or went', () => {
    expect(Object.fromEntries(rows.map((row) => [row.name, verdict(row)]))).toEqual({ install: 'slower', old: 'gone', new: 'new', start: 'same', runs: 'new' });
    expect(verdict({ object: '', class: '', name: '', before: 100, after: 60 })).toBe('faster');
    expect(verdict({ object: '', class: '', name: '', before: 100, after: 105 })).toBe('same');
  });
});

describe('two descriptions', () => {
  const object = (id: string, properties: object) => ({ '?': { id, type: 'io.example.App' }, name: id, ...properties });
  const before = { services: [object('a', { size: 1, inner: object('i', { x: 1 }), password: 'p' }), object('b', {})] };
  const after = { services: [object('a', { size: 2, inner: object('i', { x: 1 }), password: 'q' }), object('c', {})] };
  it('differ in objects that came, changed and went', () => {
    expect(changesBetween(before, after)).toEqual([
      {
        id: 'a',
        name: 'a',
        change: 'changed',
        properties: [
          { path: 'size', before: 1, after: 2, secret: false },
          { path: 'password', before: 'p', after: 'q', secret: true },
        ],
      },
      { id: 'c', name: 'c', change: 'added', properties: [] },
      { id: 'b', name: 'b', change: 'removed', properties: [] },
    ]);
  });
  it('that are the same do not differ', () => {
    expect(changesBetween(before, before)).toEqual([]);
    expect(changesBetween(null, null)).toEqual([]);
  });
});

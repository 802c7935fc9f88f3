import { describe, expect, it } from 'vitest';

import { distinct, labelOf, providersIn } from './objects';

const declared = (name: string, id: string, type: 'Application' | 'Library', of: string) => ({
  name,
  parents: [],
  package: { id, fully_qualified_name: of, name: of, type, version: '1.0.0' },
});

describe('providers', () => {
  it('are applications, each once, by their names', () => {
    const classes = [declared('b.One', 'b', 'Application', 'b'), declared('b.Two', 'b', 'Application', 'b'), declared('l.Base', 'l', 'Library', 'l'), declared('a.One', 'a', 'Application', 'a')];
    expect(providersIn(classes).map((one) => one.id)).toEqual(['a', 'b']);
  });
});

describe('objects', () => {
  it('stand once, however many of the classes they are of', () => {
    const one = { id: '1', type: 'a.B', name: 'first', path: 'services[0]' };
    expect(distinct([one, { ...one }, { ...one, id: '2' }]).map((each) => each.id)).toEqual(['1', '2']);
  });
  it('are called by name and class', () => {
    expect(labelOf({ id: '1', type: 'io.example.App', name: 'first', path: '' })).toBe('first (App)');
    expect(labelOf({ id: '1', type: 'io.example.App', name: '', path: '' })).toBe('App');
  });
});

import { describe, expect, it } from 'vitest';

import { classOf, isBusy, nameOf } from './environments';

describe('objects of a model', () => {
  it('are called by their name, else by that of their header, else by their class', () => {
    const header = { id: '1', type: 'io.example.App/1.0@io.example', name: 'header' };
    expect(nameOf({ '?': header, name: 'own' })).toBe('own');
    expect(nameOf({ '?': header, name: '' })).toBe('header');
    expect(nameOf({ '?': { id: '1', type: 'io.example.App/1.0' } })).toBe('App');
  });
  it('have a class without version and package', () => {
    expect(classOf({ '?': { type: 'io.example.App/1.0@io.example' } })).toBe('io.example.App');
    expect(classOf({})).toBe('');
  });
});

describe('environments', () => {
  it('are busy while they deploy and while they are deleted', () => {
    expect(isBusy({ status: 'deploying' })).toBe(true);
    expect(isBusy({ status: 'ready' })).toBe(false);
    expect(isBusy(undefined)).toBe(false);
  });
});

import { expect, test } from 'vitest';

import { readLook } from './look';
import { compare, findings, listOf, patchOf, queryOf } from './packages';

test('an address is read, and what makes no sense in it passed over', () => {
  expect(readLook({ search: 'web', type: 'Application', limit: 50, descending: true, after: 'a,b' })).toMatchObject({
    search: 'web',
    type: 'Application',
    limit: 50,
    descending: true,
    after: 'a,b',
  });
  expect(Object.values(readLook({ search: '', type: 'Game', limit: 7, order: 'size', owned: 'yes' })).filter((value) => value !== undefined)).toEqual([]);
});

test('the server is asked for the page of the last marker', () => {
  expect(queryOf({ after: 'a,b', descending: true, search: 'web  server' })).toMatchObject({
    marker: 'b',
    sort_dir: 'desc',
    search: 'web,server',
    order_by: 'name',
    limit: 20,
  });
  expect(queryOf({})).not.toHaveProperty('marker');
});

test('only what has changed is sent', () => {
  const before = { name: 'a', description: 'd', tags: ['x'], categories: [], is_public: false, enabled: true };
  expect(patchOf(before, { ...before, tags: ['x', 'y'], enabled: false })).toEqual([
    { op: 'replace', path: '/tags', value: ['x', 'y'] },
    { op: 'replace', path: '/enabled', value: false },
  ]);
  expect(patchOf(before, before)).toEqual([]);
});

test('findings stand on lines of their own', () => {
  expect(findings("Couldn't load package from file: first\n\n second <br /><br />\n")).toEqual(['first', 'second']);
});

test('a typed list loses blanks and what is there twice', () => {
  expect(listOf(' web, demo ,,web')).toEqual(['web', 'demo']);
});

test('packages side by side say in what they differ', () => {
  const { attributes, classes } = compare([
    { name: 'a', tags: ['x'], class_definitions: ['io.A', 'io.B'] },
    { name: 'a', tags: ['y'], class_definitions: ['io.A', 'io.C'] },
  ]);
  expect(attributes.filter((one) => one.differs).map((one) => one.name)).toEqual(['tags']);
  expect(classes).toEqual([
    { name: 'io.A', has: [true, true], differs: false },
    { name: 'io.B', has: [true, false], differs: true },
    { name: 'io.C', has: [false, true], differs: true },
  ]);
});

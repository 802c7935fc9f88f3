import { expect, it } from 'vitest';

import { differencesOf, fieldsOf } from './differences';

const pairs = (path: string, before: unknown, after: unknown, names = new Map<string, string>()) =>
  differencesOf(path, before, after, names).map((one) => [one.path, one.before, one.after]);

it('says of structures which of their values are other, and where', () => {
  const before = { ports: [{ port: 80, protocol: 'TCP' }, { port: 53 }], labels: { app: 'web' } };
  const after = { ports: [{ port: 8080, protocol: 'TCP' }], labels: { app: 'web', tier: 'front' } };
  expect(pairs('spec', before, after)).toEqual([
    ['spec.ports[0].port', 80, 8080],
    ['spec.ports[1].port', 53, null],
    ['spec.labels.tier', null, 'front'],
  ]);
});

it('shows lists of plain values whole', () => {
  expect(pairs('zones', ['a', 'b'], ['a', 'c'])).toEqual([['zones', ['a', 'b'], ['a', 'c']]]);
  expect(pairs('zones', null, ['a'])).toEqual([['zones', null, ['a']]]);
});

it('takes nothing, an empty text and an empty structure for the same', () => {
  expect(pairs('x', undefined, '')).toEqual([]);
  expect(pairs('x', {}, null)).toEqual([]);
  expect(pairs('x', [], null)).toEqual([]);
  expect(pairs('x', 0, false)).toEqual([['x', 0, false]]);
});

it('calls objects and references what people call them', () => {
  const object = { '?': { id: 'i1', type: 'io.example.Host' }, name: 'host', size: 1 };
  expect(pairs('host', object, { ...object, size: 2 })).toEqual([]);
  expect(pairs('host', 'i1', 'i2', new Map([['i1', 'one'], ['i2', 'two']]))).toEqual([['host', 'one', 'two']]);
  expect(pairs('hosts', [object], null)).toEqual([['hosts', ['host'], null]]);
});

it('hides what is below the name of a secret', () => {
  expect(differencesOf('config', { dbPassword: { value: 'a' } }, { dbPassword: { value: 'b' } })).toEqual([
    { path: 'config.dbPassword.value', before: 'a', after: 'b', secret: true },
  ]);
  expect(differencesOf('adminPassword', 'a', 'b')[0]?.secret).toBe(true);
});

it('shows of texts of several lines those that changed', () => {
  expect(pairs('file', 'one\ntwo\nthree', 'one\n2\nthree')).toEqual([['file', 'two', '2']]);
  expect(pairs('file', 'one\ntwo', 'two\none')).toEqual([['file', 'one\ntwo', 'two\none']]);
});

it('shows a structure in the place of a value as one that comes and one that goes', () => {
  expect(pairs('x', 'auto', { size: 1 })).toEqual([
    ['x', 'auto', null],
    ['x.size', null, 1],
  ]);
  expect(pairs('x', { size: 1 }, [{ size: 2 }])).toEqual([
    ['x.size', 1, null],
    ['x[0].size', null, 2],
  ]);
});

it('hides what is secret in a field of Kubernetes, also where it is masked alike', () => {
  const mark = '*** SANITIZED ***';
  expect(fieldsOf({ path: 'data.password', before: mark, after: mark })).toEqual([{ path: 'data.password', before: null, after: null, secret: true }]);
  expect(fieldsOf({ path: 'data.login', before: null, after: mark })[0]?.secret).toBe(true);
  expect(fieldsOf({ path: 'spec.replicas', before: 1, after: 2 })).toEqual([{ path: 'spec.replicas', before: 1, after: 2, secret: false }]);
});

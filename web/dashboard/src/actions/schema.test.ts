import { describe, expect, it } from 'vitest';

import { argumentsOf, argumentsOfPairs, fieldsOf } from './schema';

const schema = {
  type: 'object',
  required: ['count', 'size', 'force', 'password', 'more'],
  properties: {
    zone: { type: ['string', 'null'], default: null },
    count: { type: 'integer', minimum: 0, exclusiveMinimum: true, title: 'How many', formIndex: 1 },
    size: { enum: ['small', 'large'] },
    level: { type: 'integer', enum: [1, 2], maximum: 2, default: 2 },
    force: { type: 'boolean' },
    password: { type: 'string', pattern: '^.{4,}$' },
    names: { type: 'array', items: { type: 'string' }, default: ['a', 'b'] },
    more: { type: 'object' },
    internal: { type: 'string', visible: false },
  },
};
const fields = fieldsOf(schema);

describe('fields of a schema', () => {
  it('are those that are visible, in the order that it asks for', () => {
    expect(fields.map((field) => field.name)).toEqual(['count', 'zone', 'size', 'level', 'force', 'password', 'names', 'more']);
  });
  it('have the kind of their type, and are required without a default', () => {
    expect(Object.fromEntries(fields.map((field) => [field.name, [field.kind, field.required]]))).toEqual({
      count: ['number', true],
      zone: ['text', false],
      size: ['choice', true],
      level: ['choice', false],
      force: ['boolean', false],
      password: ['secret', true],
      names: ['list', false],
      more: ['json', true],
    });
  });
  it('say the least that a whole number may be', () => {
    expect(fields[0]?.minimum).toBe(1);
  });
});

describe('what is typed', () => {
  const good = { count: '2', size: 'small', force: 'true', password: 'long enough', more: '{"a": 1}' };
  it('becomes arguments of their types, and what is empty is left out', () => {
    expect(argumentsOf(fields, good)).toEqual({
      args: { count: 2, size: 'small', level: 2, force: true, password: 'long enough', names: ['a', 'b'], more: { a: 1 } },
      mistakes: {},
    });
  });
  it('is refused where it does not fit', () => {
    const typed = { count: '1.5', size: '', password: 'x', more: '{' };
    expect(argumentsOf(fields, typed).mistakes).toEqual({ count: 'whole', size: 'required', password: 'pattern', more: 'json' });
    expect(argumentsOf(fields, { ...good, count: '0' }).mistakes).toEqual({ count: 'minimum' });
    expect(argumentsOf(fields, { ...good, count: 'many' }).mistakes).toEqual({ count: 'number' });
    const [bounded] = fieldsOf({ properties: { a: { type: 'integer', maximum: 5, exclusiveMaximum: true } } });
    expect(argumentsOf([bounded!], { a: '5' }).mistakes).toEqual({ a: 'maximum' });
  });
  it('leaves patterns that only the server can read to the server', () => {
    const [field] = fieldsOf({ properties: { a: { type: 'string', pattern: '(?P<x>' } } });
    expect(argumentsOf([field!], { a: 'b' }).mistakes).toEqual({});
  });
});

it('reads pairs as JSON, else as texts', () => {
  expect(argumentsOfPairs([{ name: 'count', value: '2' }, { name: 'node', value: 'kube-1' }, { name: '', value: 'x' }])).toEqual({ count: 2, node: 'kube-1' });
});

it('takes an object of a class for a choice among those of the environment', () => {
  const [one, several] = fieldsOf({
    properties: {
      host: { type: ['muranoObject', 'null'], muranoType: 'io.example.Host' },
      hosts: { type: 'array', items: { type: 'muranoObject', muranoType: 'io.example.Host' } },
    },
    required: ['host'],
  });
  expect(one).toMatchObject({ kind: 'object', objectClass: 'io.example.Host', required: true });
  expect(several).toMatchObject({ kind: 'objects', objectClass: 'io.example.Host' });
  expect(argumentsOf([one!, several!], { host: 'id1', hosts: 'id1\nid2' })).toEqual({ args: { host: 'id1', hosts: ['id1', 'id2'] }, mistakes: {} });
  expect(argumentsOf([one!], {}).mistakes).toEqual({ host: 'required' });
});

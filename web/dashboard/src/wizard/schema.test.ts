import { describe, expect, it } from 'vitest';

import { check, formOf, modelOf, parsed } from './schema';

const messages = { required: 'required', wholeNumber: 'whole', badJSON: 'json' };
const form = formOf({
  properties: {
    name: { type: 'string' },
    count: { type: 'integer', minimum: 0, default: 1, formIndex: 1 },
    on: { type: 'boolean' },
    kind: { type: ['string', 'null'], enum: [null, 'a', 'b'] },
    host: { type: 'muranoObject', muranoType: 'io.Host', owned: false },
    more: { type: 'array', default: [] },
  },
});
const types = Object.fromEntries(form.fields.map((field) => [field.name, field.type]));

describe('the form of a class', () => {
  it('has a field for each property, in the order that the class gives', () => {
    expect(form.fields.map((field) => field.name)).toEqual(['count', 'host', 'name', 'kind', 'more', 'on']);
    expect(types).toEqual({ count: 'integer', host: 'object', kind: 'choice', more: 'json', name: 'string', on: 'boolean' });
  });
  it('wants what has neither default nor null', () => {
    expect(form.fields.filter((field) => field.required).map((field) => field.name)).toEqual(['host', 'name']);
  });
  it('is checked by the simple rules', () => {
    expect(check(form, { properties: { name: 'a', host: 'h' } }, messages)).toEqual([]);
    expect(check(form, { properties: { name: 'a', count: 'x', more: '[' } }, messages).map((error) => [error.field, error.message])).toEqual([
      ['count', 'whole'],
      ['host', 'required'],
      ['more', 'json'],
    ]);
  });
  it('makes an object of what was set', () => {
    expect(modelOf(form, { properties: { name: 'a', more: '[1]' } }, 'io.App', 'id')).toEqual({ '?': { id: 'id', type: 'io.App' }, name: 'a', more: [1] });
  });
});

describe('a class without schema', () => {
  const whole = formOf(null);
  it('is filled in as JSON, an object', () => {
    expect(check(whole, { properties: { '': '[]' } }, messages)).toHaveLength(1);
    expect(check(whole, { properties: { '': '{"a": 1}' } }, messages)).toEqual([]);
    expect(modelOf(whole, { properties: { '': '{"a": 1}' } }, 'io.App', 'id')).toEqual({ '?': { id: 'id', type: 'io.App' }, a: 1 });
    expect(modelOf(whole, {}, 'io.App', 'id')).toEqual({ '?': { id: 'id', type: 'io.App' } });
  });
});

it('reads JSON that was typed', () => {
  expect([parsed('{"a":1}'), parsed(''), parsed('{'), parsed([1])]).toEqual([{ value: { a: 1 } }, { value: null }, undefined, { value: [1] }]);
});

import { describe, expect, it } from 'vitest';

import { fieldsOf } from '../actions/schema';
import { changesOf, editableFields, pathOf, unmasked, withPartsOf } from './editing';

const words = { hidden: 'Hidden', unchanged: 'Unchanged' };
const schema = {
  required: ['name', 'password'],
  properties: {
    name: { type: 'string' },
    password: { type: 'string' },
    size: { type: ['integer', 'null'], minimum: 1 },
    script: { type: 'string' },
    host: { type: 'muranoObject', muranoType: 'io.example.Host' },
    tags: { type: 'array', items: { type: 'string' } },
    user: { type: 'object' },
    level: { enum: ['low', 'high'] },
  },
};
const object = {
  '?': { id: 'a', type: 'io.example.App', metadata: { owner: 'x' } },
  name: 'app',
  password: 'p',
  size: 2,
  script: 'one\ntwo',
  host: { '?': { id: 'h', type: 'io.example.Host' }, key: 'k', privateKey: 's' },
  tags: ['a', 'b'],
  user: { login: 'me', token: 't' },
  level: 'other',
  unknown: 1,
};
const fields = editableFields(schema, object, words);

describe('the form of an object', () => {
  it('shows what it has, each in a field that can hold it', () => {
    expect(Object.fromEntries(fields.map((field) => [field.name, [field.kind, field.initial]]))).toEqual({
      name: ['text', 'app'],
      password: ['secret', ''],
      size: ['number', '2'],
      script: ['lines', 'one\ntwo'],
      host: ['json', JSON.stringify({ ...object.host, privateKey: 'Hidden' }, null, 2)],
      tags: ['list', 'a\nb'],
      user: ['json', JSON.stringify({ login: 'me', token: 'Hidden' }, null, 2)],
      level: ['text', 'other'],
    });
    expect(fields.find((field) => field.name === 'password')).toMatchObject({ required: false, placeholder: 'Unchanged' });
  });
  it('is made of its values where its class has no schema', () => {
    const guessed = editableFields(null, object, words).map((field) => [field.name, field.kind]);
    expect(guessed).toContainEqual(['unknown', 'number']);
    expect(guessed).toContainEqual(['password', 'secret']);
    expect(guessed.map(([name]) => name)).not.toContain('?');
  });
});

describe('what was changed', () => {
  const changes = (typed: Record<string, string>) => changesOf(fields, typed, object, words.hidden);
  it('is nothing where nothing is typed, or what stood there', () => {
    expect(changes({})).toEqual({ changes: {}, mistakes: {} });
    expect(changes({ name: 'app', password: '', size: '2' })).toEqual({ changes: {}, mistakes: {} });
  });
  it('is only what is typed', () => {
    expect(changes({ password: 'q', size: '3' })).toEqual({ changes: { password: 'q', size: 3 }, mistakes: {} });
  });
  it('is null or empty where a field is emptied, and refused where something must be there', () => {
    expect(changes({ size: '', tags: '', script: '', name: '' })).toEqual({ changes: { size: null, tags: [], script: '' }, mistakes: { name: 'required' } });
  });
  it('keeps the secrets that are hidden in JSON', () => {
    expect(changes({ user: '{"login": "you", "token": "Hidden"}' }).changes).toEqual({ user: { login: 'you', token: 't' } });
    expect(changes({ user: '{"login": "you", "other": "Hidden"}' }).mistakes).toEqual({ user: 'secret' });
  });
});

it('finds secrets in lists by the ids of what holds them', () => {
  const was = [{ '?': { id: '1' }, token: 'a' }, { '?': { id: '2' }, token: 'b' }];
  expect(unmasked([{ '?': { id: '2' }, token: 'Hidden' }], was, 'Hidden')).toEqual([{ '?': { id: '2' }, token: 'b' }]);
});

it('leads to an object through lists by their ids', () => {
  const services = [{ '?': { id: 'a' }, nodes: [{ '?': { id: 'b' }, disk: { '?': { id: 'c' } } }] }];
  expect(pathOf(services, 'a')).toEqual(['a']);
  expect(pathOf(services, 'c')).toEqual(['a', 'nodes', 'b', 'disk']);
  expect(pathOf(services, 'd')).toBeNull();
});

it('shows the effects that the class of the owner declares for a part', () => {
  const owner = { properties: { instance: { type: 'muranoObject', onChange: { effect: 'nodeByNode', parts: { flavor: { effect: 'nodeByNode' } } } } } };
  const server = { properties: { flavor: { type: 'string', onChange: { effect: 'refused', text: 'Heat resizes it.' } }, userName: { type: 'string', onChange: { effect: 'inPlace' } } } };
  const fields = withPartsOf(owner, 'instance', fieldsOf(server));
  expect(fields.map((field) => field.effect?.effect)).toEqual(['nodeByNode', 'inPlace']);
  expect(withPartsOf(owner, 'other', fieldsOf(server))[0]?.effect).toEqual({ effect: 'refused', text: 'Heat resizes it.' });
});

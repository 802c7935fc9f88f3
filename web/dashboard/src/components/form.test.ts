import { describe, expect, it } from 'vitest';

import type { Form } from '../wizard/values';
import { changedValues, editable, inWords, labelsOf, type Today } from './form';

const forms: Form[] = [
  {
    name: 'site',
    fields: [
      { name: 'title', type: 'string', label: 'Title', required: true, initial: 'untitled' },
      { name: 'login', type: 'password', label: 'Login', required: true, secret: true },
      { name: 'zone', type: 'azone', label: 'Zone', required: true },
    ],
  },
];
const today: Today = {
  package: 'p',
  name: 'web',
  named: true,
  forms,
  values: { site: { title: 'mine', zone: 'north', size: '' } },
  kept: [{ form: 'site', field: 'login' }],
  unknown: [{ form: 'site', field: 'zone' }],
  covered: ['title'],
};

describe('the form of a component', () => {
  it('asks for no secret that is set, and for no value that is not known', () => {
    const fields = editable(forms, today, 'Unchanged')[0]!.fields;
    expect(fields.map((field) => field.required)).toEqual([true, false, false]);
    expect(fields[1]).toMatchObject({ placeholder: 'Unchanged', initial: '' });
    expect(fields.map((field) => field.inUse)).toEqual(['mine', undefined, 'north']);
  });
  it('changes only values that are others than today', () => {
    expect(changedValues(today, { site: { title: 'mine', zone: 'south', size: null, login: undefined } })).toEqual({ site: { zone: 'south' } });
    expect(changedValues(today, { site: { title: '' } })).toEqual({ site: { title: '' } });
    expect(changedValues(today, {})).toEqual({});
  });
  it('calls fields by their labels', () => {
    expect(labelsOf(forms, [...today.unknown, { form: 'gone', field: 'x' }])).toEqual(['Zone', 'x']);
  });
});

it('writes a value in a sentence', () => {
  expect([inWords('', 'nothing'), inWords(3, ''), inWords({ a: 1 }, ''), inWords(false, '')]).toEqual(['nothing', '3', '{"a":1}', 'false']);
});

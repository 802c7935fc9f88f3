import { describe, expect, it } from 'vitest';

import { byTopic, differs, errorsIn, isSet, keepable, numberOf, onlyChoice, stepsOf, textOf, titleOf, unconfirmed, valueOf, withValue, type Field, type Form } from './values';

const field = (name: string, more: Partial<Field> = {}): Field => ({ name, type: 'string', ...more });
const forms: Form[] = [
  { name: 'appConfiguration', fields: [field('name', { initial: 'app' }), field('secret', { type: 'password', secret: true, confirm: true })] },
  { name: 'nothing', fields: [field('license', { hidden: true })] },
];

describe('values', () => {
  it('are the initial ones until they are set', () => {
    const name = forms[0]!.fields[0]!;
    expect(valueOf({}, 'appConfiguration', name)).toBe('app');
    const values = withValue({}, 'appConfiguration', 'name', '');
    expect(valueOf(values, 'appConfiguration', name)).toBe('');
    expect([isSet({}, 'appConfiguration', 'name'), isSet(values, 'appConfiguration', 'name')]).toEqual([false, true]);
  });
  it('are kept without secrets, and without what is not known to be none', () => {
    const values = { appConfiguration: { name: 'a', secret: 'b', gone: 'c' }, other: { x: 1 } };
    expect(keepable(forms, values)).toEqual({ appConfiguration: { name: 'a' } });
  });
  it('of numbers are numbers where they are whole', () => {
    expect(['3', ' -4 ', '', '3.5', 'many'].map(numberOf)).toEqual([3, -4, null, '3.5', 'many']);
  });
  it('are texts for inputs', () => {
    expect([null, 'a', 3, ['a', 'b'], { a: 1 }].map(textOf)).toEqual(['', 'a', '3', 'a, b', '{"a":1}']);
  });
});

describe('secrets that are typed twice', () => {
  it('have to be the same, once one is typed', () => {
    expect(unconfirmed(forms, {}, {}, 'differ')).toEqual([]);
    const values = withValue({}, 'appConfiguration', 'secret', 'x');
    expect(unconfirmed(forms, values, {}, 'differ')).toEqual([{ form: 'appConfiguration', field: 'secret', message: 'differ' }]);
    expect(unconfirmed(forms, values, withValue({}, 'appConfiguration', 'secret', 'x'), 'differ')).toEqual([]);
  });
});

describe('topics', () => {
  const form: Form = { name: 'f', fields: [field('name'), field('mtu', { topic: 'Network' }), field('proxy', { topic: 'Proxies' }), field('range', { topic: 'Network' }), field('old', { topic: 'Network', hidden: true })] };
  it('have the fields that are no main questions', () => {
    const { main, topics } = byTopic(form);
    expect(main.map((one) => one.name)).toEqual(['name']);
    expect(topics.map(([topic, fields]) => [topic, fields.map((one) => one.name)])).toEqual([
      ['Network', ['mtu', 'range']],
      ['Proxies', ['proxy']],
    ]);
  });
  it('know which of their fields differ from what is suggested', () => {
    const list = field('list', { initial: ['a'] });
    const changed = (one: Field, value: unknown) => differs(withValue({}, 'f', one.name, value), 'f', one);
    expect(differs({}, 'f', list)).toBe(false);
    expect([changed(list, ['a']), changed(list, ['b']), changed(field('x'), ''), changed(field('x'), 'y'), changed(field('x', { initial: true }), false)]).toEqual([false, true, false, true, true]);
  });
});

describe('steps', () => {
  it('are the forms with something to fill in, the first with the name', () => {
    expect(stepsOf(forms, true, 'Name').map((step) => [step.id, step.title, step.named])).toEqual([['appConfiguration', 'App configuration', true]]);
    expect(stepsOf([], true, 'Name').map((step) => [step.title, step.named])).toEqual([['Name', true]]);
    expect(stepsOf([], false, 'Name')).toEqual([]);
  });
  it('have titles for people', () => {
    expect(['appConfiguration', 'kube_net', 'x'].map(titleOf)).toEqual(['App configuration', 'Kube net', 'X']);
  });
  it('are left when nothing of them is wrong', () => {
    const [step] = stepsOf(forms, true, 'Name');
    const errors = [
      { form: '', field: 'name', message: 'n' },
      { form: 'appConfiguration', field: '', message: 'whole' },
      { form: 'nothing', field: 'license', message: 'l' },
    ];
    expect(errorsIn(step!, errors).map((error) => error.message)).toEqual(['n', 'whole']);
  });
});

it('chooses what is the only choice, where one has to choose', () => {
  expect(onlyChoice(field('a', { required: true }), ['x'])).toBe('x');
  expect(onlyChoice(field('a', { required: true }), ['x', 'y'])).toBeUndefined();
  expect(onlyChoice(field('a', { required: false }), ['x'])).toBeUndefined();
});

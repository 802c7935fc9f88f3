import { describe, expect, it } from 'vitest';

import { actionsNamed, actionsOf, mayDestroy, partsOf, shownOf } from './actions';

describe('actions', () => {
  const object = {
    '?': {
      id: 'a',
      type: 'io.example.App',
      _actions: {
        a_zoom: { name: 'zoom', title: 'Zoom', enabled: true },
        a_add: { name: 'add', title: 'Add', enabled: true, description: 'One more' },
        a_off: { name: 'off', title: 'Off', enabled: false },
        a_plain: {},
        a_old: { name: 'old', title: 'Aged', deprecated: 'use zoom' },
      },
    },
  };
  it('are the enabled ones, by their titles', () => {
    expect(actionsOf(object).map((action) => action.title)).toEqual(['Add', 'plain', 'Zoom', 'Aged']);
    expect(actionsOf({})).toEqual([]);
  });
  it('are offered by their methods, without deprecated ones', () => {
    expect(actionsNamed(object, ['zoom', 'old', 'add', 'off']).map((action) => action.method)).toEqual(['zoom', 'add']);
    const former = { '?': { id: 'b', type: 'io.example.App', _actions: { b_old: { name: 'old' } } } };
    expect(actionsNamed(former, ['zoom', 'old']).map((action) => action.method)).toEqual(['old']);
  });
  it('are asked about more plainly when their name takes something away', () => {
    const named = (method: string) => mayDestroy({ id: '', method, title: '', description: '', deprecated: '' });
    expect([named('scaleNodesDown'), named('removeUser'), named('scaleNodesUp'), named('download')]).toEqual([true, true, false, false]);
  });
});

it('takes a type apart', () => {
  expect(partsOf('io.example.App/1.0@io.example')).toEqual({ name: 'io.example.App', version: '1.0', packageName: 'io.example' });
  expect(partsOf('io.example.App')).toEqual({ name: 'io.example.App', version: '', packageName: '' });
});

describe('a result', () => {
  it('is shown as what it is', () => {
    expect(shownOf({})).toEqual({ kind: 'running' });
    expect(shownOf({ isException: false, result: null })).toEqual({ kind: 'nothing' });
    expect(shownOf({ isException: false, result: 'a word' })).toEqual({ kind: 'text', text: 'a word' });
    expect(shownOf({ isException: false, result: { a: 1 } })).toEqual({ kind: 'json', json: '{\n  "a": 1\n}' });
  });
  it('is a file when its class is that of files', () => {
    const file = { '?': { type: 'io.murano.File/0.0.0@io.murano' }, base64Content: 'aGk=', filename: 'a.txt', mimeType: 'text/plain' };
    expect(shownOf({ isException: false, result: file })).toEqual({ kind: 'file', name: 'a.txt', mime: 'text/plain', base64: 'aGk=' });
  });
  it('is a failure with the words of its exception', () => {
    expect(shownOf({ isException: true, result: { message: 'broken', details: 'at line 1' } })).toEqual({
      kind: 'failure',
      message: 'broken',
      details: 'at line 1',
    });
  });
});

import { expect, test } from 'vitest';

import { fit, fitting } from './palette';

const entry = (name: string) => ({ id: name, name, kind: '', run: () => undefined });

test('names fit that have all words, best where they begin with the first', () => {
  expect([fit('Create environment', 'cre'), fit('Create environment', 'env'), fit('Create environment', 'ronm'), fit('Quotas', 'env')]).toEqual([0, 1, 2, null]);
  expect(fitting([entry('My web'), entry('Audit'), entry('Web server')], 'we').map((one) => one.name)).toEqual(['Web server', 'My web']);
  expect(fitting([entry('b'), entry('a')], '').map((one) => one.name)).toEqual(['b', 'a']);
});

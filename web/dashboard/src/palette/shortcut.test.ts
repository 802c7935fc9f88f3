import { expect, test } from 'vitest';

import { shortcut } from './shortcut';

const press = (key: string, rest = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, ...rest });
const inside = (part: string) => ({ closest: (selector: string) => (selector.includes(part) ? ({} as Element) : null) }) as unknown as Pick<Element, 'closest'>;

test('the palette opens from anywhere but a dialog', () => {
  expect(shortcut(press('k', { ctrlKey: true }), inside('input'))).toBe('palette');
  expect(shortcut(press('K', { metaKey: true }), null)).toBe('palette');
  expect(shortcut(press('k', { ctrlKey: true }), inside('dialog'))).toBeNull();
  expect(shortcut(press('k'), null)).toBeNull();
});

test('a question mark in a field is a question mark', () => {
  expect(shortcut(press('?'), null)).toBe('keyboard');
  expect(shortcut(press('?'), inside('input'))).toBeNull();
});

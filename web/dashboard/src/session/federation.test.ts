import { expect, test } from 'vitest';

import { comeBack, ticketOf } from './federation';

const memory = (text: string | null) => {
  let kept = text;
  return { getItem: () => kept, setItem: (_key: string, value: string) => void (kept = value), removeItem: () => void (kept = null) };
};

test('a ticket is read from the fragment of an address', () => {
  expect(ticketOf('#ticket=v2%3Aa%2Bb%3D')).toBe('v2:a+b=');
  expect([ticketOf(''), ticketOf('#main')]).toEqual(['', '']);
});

test('one comes back to the page that one has left, once, and to no other site', () => {
  const tab = memory('{"back":"/dashboard/environments?x=1","project":"p"}');
  expect(comeBack(tab)).toEqual({ back: '/dashboard/environments?x=1', project: 'p' });
  expect(comeBack(tab)).toEqual({ back: '/dashboard/' });
  for (const back of ['https://evil.example/', '//evil.example/', '/dashboard/\\evil', '']) {
    expect(comeBack(memory(JSON.stringify({ back }))).back).toBe('/dashboard/');
  }
});

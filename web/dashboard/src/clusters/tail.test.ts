import { expect, test } from 'vitest';

import { empty, longestLine, mostLines, plainLine, shownLines, tailed, type LogLine } from './tail';

const line = (text: string, time = '2026-11-22T06:00:00Z'): LogLine => ({ time, text });

test('a log keeps its newest lines and counts those that are gone', () => {
  const first = tailed(empty, { kind: 'lines', lines: Array.from({ length: mostLines }, (_, i) => line(`${i}`)) });
  const next = tailed(first, { kind: 'lines', lines: [line('last'), line('very last')] });
  expect([next.lines.length, next.gone, next.lines[0]?.text, next.lines.at(-1)?.text]).toEqual([mostLines, 2, '2', 'very last']);
});

test('a container that writes again does not wait any more', () => {
  const waiting = tailed(empty, { kind: 'state', state: 'CrashLoopBackOff', ended: false });
  expect(waiting.state).toBe('CrashLoopBackOff');
  expect(tailed(waiting, { kind: 'lines', lines: [line('a')] }).state).toBe('');
});

test('commands of terminals are left out, and nothing of a line is unseen', () => {
  expect(plainLine('\u001b[1;31mred\u001b[0m and \u001b]8;;https://evil.example\u0007a link\u001b]8;;\u0007')).toBe('red and a link');
  expect(plainLine('a\u0000b\u0008c\rd\u202ee\tf\u009bg')).toBe('a·b·c·d·e\tf·g');
  expect(plainLine('<img src=x onerror=alert(1)>')).toBe('<img src=x onerror=alert(1)>');
});

test('a line is never so long that the viewer measures it as HTML', () => {
  expect(plainLine(`<img src=x>${'x'.repeat(10_000)}`)).toHaveLength(longestLine + 1);
});

test('lines are found by what is shown of them', () => {
  const lines = [line('\u001b[31mERR\u001b[0mOR one'), line('two')];
  expect(shownLines(lines, 'error', null)).toEqual(['ERROR one']);
  expect(shownLines(lines, '', (time) => time.slice(11, 19))).toEqual(['06:00:00  ERROR one', '06:00:00  two']);
});

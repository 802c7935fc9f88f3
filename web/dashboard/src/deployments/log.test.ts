import { describe, expect, it } from 'vitest';

import { everything, filtered, logText, pieces, reporters } from './log';

const reports = [
  { id: '1', level: 'info' as const, text: 'Started', created: '2026-11-22T10:00:00' },
  { id: '2', level: 'warning' as const, text: 'Slow', entity_id: 'a', entity: 'io.example.App', created: '2026-11-22T10:00:01' },
  { id: '3', level: 'error' as const, text: 'Broken', details: 'at line 1\nat line 2', entity_id: 'b', created: '2026-11-22T10:00:02' },
];
const ids = (filter: object) => filtered(reports, { ...everything, ...filter }).map((report) => report.id);

describe('a log', () => {
  it('is filtered by level, object and text', () => {
    expect(ids({})).toEqual(['1', '2', '3']);
    expect(ids({ level: 'warning' })).toEqual(['2', '3']);
    expect(ids({ object: 'a' })).toEqual(['2']);
    expect(ids({ words: 'LINE 2' })).toEqual(['3']);
    expect(ids({ level: 'error', object: 'a' })).toEqual([]);
  });
  it('knows what it is about', () => {
    expect(reporters(reports)).toEqual(['a', 'b']);
  });
  it('is written as text', () => {
    expect(logText(reports, new Map([['b', 'shop']]))).toBe(
      '2026-11-22T10:00:00.000Z INFO Started\n' +
        '2026-11-22T10:00:01.000Z WARNING io.example.App: Slow\n' +
        '2026-11-22T10:00:02.000Z ERROR shop: Broken\n    at line 1\n    at line 2\n',
    );
  });
  it('of 10,000 lines is filtered at once', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => ({ id: String(i), level: 'info' as const, text: `line ${i}` }));
    const start = performance.now();
    expect(filtered(many, { ...everything, words: '9999' })).toHaveLength(1);
    expect(performance.now() - start).toBeLessThan(200);
  });
});

it('cuts a list into pieces', () => {
  expect(pieces([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
  expect(pieces([], 2)).toEqual([]);
});

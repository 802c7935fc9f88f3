import { expect, it } from 'vitest';

import { daysLeft, shortened, urgency, type Certificate } from './certificates';
import { everyHours } from './snapshots';

const now = Date.UTC(2026, 0, 1);
const one = (days: number, node = 'kube-1'): Certificate => ({ node, name: `of ${days}`, expires: new Date(now + days * 86_400_000).toISOString() });

it('tells what of certificates is pressing', () => {
  expect(daysLeft(one(3), now)).toBe(3);
  expect([one(-1), one(89), one(91), one(300, ''), one(400, '')].map((each) => urgency(each, now))).toEqual(['over', 'soon', 'later', 'soon', 'later']);
});

it('shows few certificates at first, and all of which something is to be said', () => {
  const list = [...Array.from({ length: 9 }, (_, i) => one(i)), ...Array.from({ length: 9 }, (_, i) => one(200 + i))];
  expect(shortened(list, now)).toHaveLength(9);
  expect(shortened(list.slice(9), now)).toHaveLength(6);
  expect(shortened([], now)).toEqual([]);
});

it('knows how often a cluster takes snapshots by itself', () => {
  expect([undefined, {}, { snapshotEvery: 6 }, { snapshotEvery: 0 }].map(everyHours)).toEqual([24, 24, 6, null]);
});

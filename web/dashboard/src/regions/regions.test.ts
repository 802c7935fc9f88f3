import { describe, expect, it } from 'vitest';

import { kept, nameOfRegion } from './regions';

const two = [
  { name: 'RegionOne', home: true },
  { name: 'RegionTwo', home: false },
];

describe('the region that somebody chose', () => {
  it('is kept as long as the cloud has it', () => {
    expect(kept(two, 'RegionTwo')).toBe('RegionTwo');
    expect(kept(two.slice(0, 1), 'RegionTwo')).toBe('');
    expect(kept([], 'RegionTwo')).toBe('');
  });
  it("is none where it is Burano's own, or nothing was chosen", () => {
    expect(kept(two, 'RegionOne')).toBe('');
    expect(kept(two, null)).toBe('');
  });
  it('has a name all the same', () => {
    expect(nameOfRegion(two, '')).toBe('RegionOne');
    expect(nameOfRegion(two, 'RegionTwo')).toBe('RegionTwo');
    expect(nameOfRegion([], '')).toBe('');
  });
});

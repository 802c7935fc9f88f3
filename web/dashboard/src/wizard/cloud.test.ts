import { describe, expect, it } from 'vitest';

import { en } from '../text/en';
import { fits, imagesOf, missing, networkChoices, requirementsOf, showMemory, showRequirements } from './cloud';

describe('flavors', () => {
  const requirements = requirementsOf({ requirements: { min_vcpus: 2, min_memory_mb: 1024, max_disk: 20 } });
  it('fit what is required', () => {
    expect(fits({ vcpus: 2, ram: 1024, disk: 20 }, requirements)).toBe(true);
    expect(fits({ vcpus: 1 }, requirementsOf(undefined))).toBe(true);
  });
  it('say what they miss', () => {
    expect(showRequirements(missing({ vcpus: 1, ram: 2048, disk: 40 }, requirements), en.details)).toEqual(['at least 2 vCPU', 'at most 20 GiB disk']);
  });
  it('have memory in the unit that reads best', () => {
    expect([512, 1024, 1536, 1100].map(showMemory)).toEqual(['512 MiB', '1 GiB', '1.5 GiB', '1100 MiB']);
  });
});

it('images are of a type or of a kind of it', () => {
  const images = [{ id: 'a', type: 'linux' }, { id: 'b', type: 'linux.kubernetes' }, { id: 'c', type: 'linuxes' }, { id: 'd' }];
  expect(imagesOf(images, 'linux').map((image) => image.id)).toEqual(['a', 'b']);
  expect(imagesOf(images, undefined)).toHaveLength(4);
});

describe('networks', () => {
  const networks = [
    { id: 'n', name: 'inner', subnets: ['s', 't'] },
    { id: 'm', name: 'other', subnets: [] },
    { id: 'p', name: 'public', subnets: ['u'], external: true },
  ];
  const values = (options?: Record<string, unknown>) => networkChoices(networks, options).map((choice) => choice.value);
  it('are offered with their subnets, after Auto, and none of outside', () => {
    expect(values()).toEqual([
      [null, null],
      ['n', 's'],
      ['n', 't'],
    ]);
  });
  it('are offered as the field wants', () => {
    expect(values({ include_subnets: false, allow_auto: false })).toEqual([
      ['n', null],
      ['m', null],
    ]);
    expect(values({ include_subnets: false, filter: '^oth' })).toEqual([
      [null, null],
      ['m', null],
    ]);
    expect(values({ filter: '(' })).toEqual([[null, null]]);
  });
});

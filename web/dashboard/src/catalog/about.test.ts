import { expect, it } from 'vitest';

import { en } from '../text/en';
import type { Field } from '../wizard/values';
import { licenseOf, needsOf, quickName, suggested, supplierOf } from './about';

const form = (...fields: Field[]) => [{ name: 'one', fields }];

it('finds the licence', () => {
  expect(licenseOf(form({ name: 'license', type: 'string', hidden: true, description: 'MIT' }))).toBe('MIT');
  expect(licenseOf(form({ name: 'name', type: 'string', description: 'MIT' }))).toBe('');
});

it('says what a package needs', () => {
  expect(
    needsOf(
      form(
        { name: 'flavor', label: 'Flavor', type: 'flavor', options: { requirements: { min_vcpus: 2, max_disk: 80 } } },
        { name: 'free', label: 'Any', type: 'flavor' },
        { name: 'image', label: 'Image', type: 'image', options: { image_type: 'linux' } },
        { name: 'host', label: 'Host', type: 'object', required: true, classes: ['io.a', 'io.b'] },
      ),
      en.details,
    ),
  ).toEqual(['Flavor: at least 2 vCPU, at most 80 GiB disk', 'Image: an image of the type linux', 'Host: an application of io.a, io.b']);
});

it('reads a supplier, and leads to web pages only', () => {
  expect(supplierOf({ Name: 'A', CompanyUrl: { Text: 'Site', Link: 'https://a.example' } })).toMatchObject({ name: 'A', link: 'https://a.example', linkText: 'Site' });
  expect(supplierOf({ Name: 'A', CompanyUrl: { Link: 'javascript:alert(1)' } })?.link).toBe('');
  expect(supplierOf({})).toBeNull();
  expect(supplierOf(undefined)).toBeNull();
});

it('takes the first free name', () => {
  expect(quickName(['quick-env-1', 'other', 'quick-env-3'])).toBe('quick-env-2');
});

it('suggests the only environment, or the one with a draft, and else none', () => {
  const isDrafted = (one: string) => one === 'b';
  expect(suggested(['a'], isDrafted)).toBe('a');
  expect(suggested(['a', 'b', 'c'], isDrafted)).toBe('b');
  expect(suggested(['a', 'c'], isDrafted)).toBe('');
  expect(suggested(['a', 'b'], () => true)).toBe('');
  expect(suggested([], isDrafted)).toBe('');
});

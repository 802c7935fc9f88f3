import { describe, expect, it } from 'vitest';

import { inOrder, isBundle, missing, readBundle } from './bundle';

const bundle = readBundle('demo.bundle', '{"Packages": [{"Name": "io.example.Library"}, {"Name": "io.example.App", "Version": "1.2"}]}');

describe('bundles', () => {
  it('are files with a list of names', () => {
    expect(bundle?.packages).toEqual([{ name: 'io.example.Library', version: '' }, { name: 'io.example.App', version: '1.2' }]);
    for (const text of ['', '[]', 'null', '{"Packages": []}', '{"Packages": [{}]}', '{"Packages": [null]}', '{"Packages": {"Name": "a"}}']) {
      expect(readBundle('b', text)).toBeNull();
    }
    expect(['a.bundle', 'A.JSON', 'a.zip'].map(isBundle)).toEqual([true, true, false]);
  });
  it('are met by files that are called as in repositories', () => {
    if (!bundle) throw new Error('it is a bundle');
    expect(missing(bundle, ['io.example.App.zip'])).toEqual(['io.example.Library']);
    expect(missing(bundle, ['io.example.App.1.2.zip', 'io.example.Library.zip'])).toEqual([]);
    expect(missing(bundle, ['io.example.App.1.3.zip', 'io.example.Library.zip'])).toEqual(['io.example.App']);
  });
  it('say in which order packages are imported', () => {
    const list = ['other.zip', 'io.example.App.1.2.zip', 'io.example.Library.zip'];
    expect(inOrder(bundle, list, (name) => name)).toEqual(['io.example.Library.zip', 'io.example.App.1.2.zip', 'other.zip']);
    expect(inOrder(null, list, (name) => name)).toEqual(list);
  });
});

import { expect, test } from 'vitest';

import { anchorOf, contents, documents, find, headlinesOf, movedTo, readContents, readDocument, targetOf } from './documents';

const list = [readDocument('api', '# The API\n\nIt answers.\n\n## Lists in pages\n\nA `limit`.\n\n```sh\n## no headline, limit\n```\n')];

test('a document has its title from its first line', () => {
  expect(list[0]?.title).toBe('The API');
  expect(readDocument('x', 'no title').title).toBe('x');
});

test('headlines are found before lines, and lines below their headline', () => {
  expect(find(list, 'lists PAGES')[0]).toMatchObject({ section: 'lists-in-pages', line: '' });
  expect(find(list, 'limit').map((one) => one.section)).toEqual(['lists-in-pages', 'lists-in-pages']);
  expect(find(list, ' ')).toEqual([]);
});

test('links lead to other documents, places, sites, or say which file of the project they mean', () => {
  expect(targetOf('api.md#lists-in-pages', list)).toEqual({ kind: 'page', page: 'api', section: 'lists-in-pages' });
  expect(targetOf('#there', list)).toEqual({ kind: 'section', section: 'there' });
  expect(targetOf('https://example.org/', list)).toEqual({ kind: 'outside', href: 'https://example.org/' });
  expect(targetOf('../test/packages/a', list)).toEqual({ kind: 'file', path: '../test/packages/a' });
  expect(targetOf('gone.md', list).kind).toBe('file');
});

test('a headline with signs has the anchor that others link to', () => {
  expect(anchorOf('Where `/v1` differs, on purpose')).toBe('where-v1-differs-on-purpose');
});

test('the contents say which chapters there are, for whom, and in which order', () => {
  expect(readContents('# Contents\n\n## Find your way\n\n[x](y.md)\n\n## For users\n\n- [A](a.md): one\n- [B](b-c.md): two\n\n## For authors of packages\n\n- [D](d.md)\n')).toEqual([
    { reader: 'users', chapters: ['a', 'b-c'] },
    { reader: 'authors', chapters: ['d'] },
  ]);
  expect(documents[0]?.name).toBe(contents);
  expect(documents.length).toBeGreaterThan(30);
  for (const document of documents) expect(document.text, document.name).not.toBe('');
});

test('headlines are listed as links lead to them', () => {
  expect(headlinesOf(list[0]!)).toEqual([{ level: 2, text: 'Lists in pages', section: 'lists-in-pages' }]);
});

test('a place that has moved to another chapter is found there', () => {
  expect(movedTo('actions', 'volumes-for-pods')).toEqual({ page: 'volumes', section: 'volumes-for-pods' });
  expect(movedTo('volumes', 'volumes-for-pods')).toBeUndefined();
});

test('pages that the dashboard leads to exist', () => {
  for (const name of ['catalog', 'authors', 'api', 'node-image', 'operators', 'recovery', 'dashboard', 'configuration']) {
    expect(documents.map((one) => one.name)).toContain(name);
  }
});

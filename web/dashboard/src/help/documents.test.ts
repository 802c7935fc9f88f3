import { expect, test } from 'vitest';

import { anchorOf, chapters, documents, find, readDocument, targetOf } from './documents';

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

test('links between the project’s documents lead somewhere', () => {
  expect(documents.length).toBeGreaterThan(10);
  for (const document of documents) {
    for (const [, href = ''] of document.text.matchAll(/\]\(([^)]+)\)/g)) {
      const target = targetOf(href);
      if (target.kind === 'file') expect(href, document.name).not.toMatch(/^[\w-]+\.md/);
      if (target.kind === 'page' && target.section) {
        const other = documents.find((one) => one.name === target.page);
        const anchors = [...(other?.text.matchAll(/^#{2,}\s+(.*)$/gm) ?? [])].map(([, headline = '']) => anchorOf(headline));
        expect(anchors, `${document.name}: ${href}`).toContain(target.section);
      }
    }
  }
});

test('each document is in one chapter, and what chapters name is there', () => {
  expect(documents.map((one) => one.name)).toEqual(Object.values(chapters).flat());
});

test('pages that the dashboard leads to exist', () => {
  for (const name of ['catalog', 'authors', 'api', 'node-image', 'operators', 'actions', 'configuration']) {
    expect(documents.map((one) => one.name)).toContain(name);
  }
});

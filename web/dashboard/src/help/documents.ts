// The project's documents, built into the dashboard.

export interface Document {
  name: string;
  title: string;
  /** Markdown without the title. */
  text: string;
}

export interface Found {
  document: Document;
  /** The headline below which it was found, as one goes there. */
  section: string;
  headline: string;
  /** The line that was found. */
  line: string;
}

/** Splits a document into its title and the rest. */
export function readDocument(name: string, source: string): Document {
  const [first = '', ...rest] = source.split('\n');
  return first.startsWith('# ') ? { name, title: first.slice(2).trim(), text: rest.join('\n') } : { name, title: name, text: source };
}

const files = import.meta.glob<string>('../../../../docs/*.md', { query: '?raw', import: 'default', eager: true });

/** For whom the documents are, with their names in the order in which one reads them. */
export const chapters = {
  users: ['tutorial', 'catalog', 'dashboard', 'actions', 'failures', 'api', 'commands'],
  authors: ['authors'],
  operators: ['operators', 'configuration', 'node-image', 'terraform', 'scale'],
  contributors: ['architecture', 'contributing', 'local-cloud', 'openstack-test', 'dashboard-scenarios', 'measurements'],
};

export type Chapter = keyof typeof chapters;

const order: string[] = Object.values(chapters).flat();

/** All documents, in the order of their chapters. */
export const documents: Document[] = Object.entries(files)
  .map(([path, source]) => readDocument(path.split('/').at(-1)!.replace(/\.md$/, ''), source))
  .sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));

/** The name by which a headline is gone to, as on the pages of common code hosts. */
export const anchorOf = (headline: string): string =>
  headline
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

const most = 50;

/** The lines that have all the words, those of titles and headlines first. */
export function find(list: Document[], words: string): Found[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return [];
  const headlines: Found[] = [];
  const lines: Found[] = [];
  const has = (text: string) => wanted.every((word) => text.toLowerCase().includes(word));
  for (const document of list) {
    if (has(document.title)) headlines.push({ document, section: '', headline: document.title, line: '' });
    let headline = document.title;
    let section = '';
    let fenced = false;
    for (const line of document.text.split('\n')) {
      if (line.startsWith('```')) fenced = !fenced;
      const title = !fenced && /^#{2,}\s+(.*)/.exec(line)?.[1];
      if (title) {
        headline = title;
        section = anchorOf(title);
        if (has(title)) headlines.push({ document, section, headline, line: '' });
      } else if (has(line)) {
        lines.push({ document, section, headline, line: line.trim() });
      }
    }
  }
  return [...headlines, ...lines].slice(0, most);
}

export type Target = { kind: 'page'; page: string; section?: string } | { kind: 'section'; section: string } | { kind: 'outside'; href: string } | { kind: 'file'; path: string };

/** Where a link in a document leads: to another one, to a place in it, to another site, or to a file of the project that is not here. */
export function targetOf(href: string, list: Document[] = documents): Target {
  if (/^https?:\/\//.test(href)) return { kind: 'outside', href };
  if (href.startsWith('#')) return { kind: 'section', section: href.slice(1) };
  const [, page, section] = /^(?:\.\/)?([\w-]+)\.md(?:#(.*))?$/.exec(href) ?? [];
  if (page && list.some((document) => document.name === page)) return { kind: 'page', page, section };
  return { kind: 'file', path: href };
}

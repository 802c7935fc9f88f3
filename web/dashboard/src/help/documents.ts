// The project's documents, built into the dashboard.

import moved from '../../../../docs/moved.json';

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

const sources = Object.fromEntries(Object.entries(files).map(([path, source]) => [path.split('/').at(-1)!.replace(/\.md$/, ''), source]));

/** The chapter that lists the others. */
export const contents = 'README';

export const readers = ['users', 'authors', 'operators', 'contributors'] as const;

export interface Part {
  /** For whom its chapters are. */
  reader: (typeof readers)[number];
  /** Their names, in the order in which one reads them. */
  chapters: string[];
}

/** The parts of the book, of a list of its chapters in Markdown: below a headline "For …", each in a line that begins with a link. */
export function readContents(source: string): Part[] {
  const parts: Part[] = [];
  for (const line of source.split('\n')) {
    const [, headline] = /^##\s+(.*)/.exec(line) ?? [];
    const reader = readers.find((one) => headline?.startsWith(`For ${one}`));
    if (reader) parts.push({ reader, chapters: [] });
    const [, chapter] = /^- \[[^\]]+\]\(([\w-]+)\.md\)/.exec(line) ?? [];
    if (chapter) parts.at(-1)?.chapters.push(chapter);
  }
  return parts;
}

export const parts = readContents(sources[contents] ?? '');

/** All documents, in the order in which one reads them; the contents come first. */
export const documents: Document[] = [contents, ...parts.flatMap((part) => part.chapters)].map((name) => readDocument(name, sources[name] ?? ''));

/** Where a place is today that was in another chapter: `scaling#masters` for `actions#masters`. */
export const movedTo = (page: string, section: string): { page: string; section?: string } | undefined => {
  const [there, headline] = (moved as Record<string, string>)[`${page}#${section}`]?.split('#') ?? [];
  return there ? { page: there, section: headline } : undefined;
};

export interface Headline {
  level: number;
  text: string;
  section: string;
}

/** The headlines of a document, outside of its blocks of code. */
export function headlinesOf(document: Document): Headline[] {
  const headlines: Headline[] = [];
  let fenced = false;
  for (const line of document.text.split('\n')) {
    if (line.startsWith('```')) fenced = !fenced;
    const [, signs, text] = (!fenced && /^(#{2,})\s+(.*)/.exec(line)) || [];
    if (signs && text) headlines.push({ level: signs.length, text: text.replaceAll('`', ''), section: anchorOf(text) });
  }
  return headlines;
}

/** The name by which a headline is gone to, as on the pages of common code hosts. */
export const anchorOf = (headline: string): string =>
  headline
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

const most = 50;

/** The lines that have all the words, titles and headlines first. */
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

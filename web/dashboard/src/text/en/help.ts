import { shell } from './shell';

export const help = {
  title: shell.help,
  about: (page: string) => `Help: ${page}`,
  search: 'Search the documents',
  pages: 'Documents',
  readers: { users: 'For users', authors: 'For authors of packages', operators: 'For operators', contributors: 'For contributors' },
  sections: 'In this chapter',
  neighbours: 'Chapters before and after this one',
  before: (title: string) => `← ${title}`,
  next: (title: string) => `${title} →`,
  nothing: 'No document has these words',
  below: (document: string, section: string) => `${document}: ${section}`,
  gone: 'There is no such document',
  goneWhat: 'Choose one from the list.',
  toContents: 'Contents',
};

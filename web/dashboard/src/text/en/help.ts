export const help = {
  title: 'Help',
  about: (page: string) => `Help: ${page}`,
  search: 'Search the documents',
  pages: 'Documents',
  nothing: 'No document has these words',
  below: (document: string, section: string) => `${document}: ${section}`,
  gone: 'There is no such document',
  goneWhat: 'Choose one from the list.',
  toCatalog: 'About the catalog',
};

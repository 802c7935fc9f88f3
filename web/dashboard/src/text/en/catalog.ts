export const catalog = {
  title: 'Catalog',
  search: 'Search applications',
  category: 'Category',
  all: 'All categories',
  none: 'The catalog is empty',
  noneWhat: 'Applications come in packages: zip archives with classes, forms and a logo. Import one to begin.',
  noMatch: 'No application matches',
  clear: 'Clear search and category',
  by: (author: string) => `by ${author}`,
  addingTo: (name: string) => `Choose the application to add to ${name}.`,
  backToEnvironment: 'Back to the environment',
};

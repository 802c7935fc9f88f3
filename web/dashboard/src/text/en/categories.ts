import { shell } from './shell';

export const categories = {
  title: shell.categories,
  what: 'The catalog is sorted into categories. Administrators add and delete them.',
  add: 'Add category',
  name: 'Name',
  count: 'Packages',
  actions: 'Actions',
  delete: 'Delete',
  deleteOne: (name: string) => `Delete ${name}`,
  deleteTitle: (name: string) => `Delete ${name}?`,
  deleteWhat: 'No package is in it.',
  full: 'Packages are in it: a category can be deleted when it is empty.',
  none: 'No categories yet',
  noneWhat: 'Add one, then put packages into it.',
};

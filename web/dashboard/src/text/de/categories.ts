import type { Texts } from '../en';
import { shell } from './shell';

export const categories: Texts['categories'] = {
  title: shell.categories,
  what: 'Der Katalog ist in Kategorien eingeteilt. Administratoren legen sie an und löschen sie.',
  add: 'Kategorie anlegen',
  name: 'Name',
  count: 'Pakete',
  actions: 'Aktionen',
  delete: 'Löschen',
  deleteOne: (name) => `${name} löschen`,
  deleteTitle: (name) => `${name} löschen?`,
  deleteWhat: 'In ihr ist kein Paket.',
  full: 'In ihr sind Pakete: Eine Kategorie lässt sich löschen, wenn sie leer ist.',
  none: 'Noch keine Kategorien',
  noneWhat: 'Legen Sie eine an, und ordnen Sie ihr dann Pakete zu.',
};

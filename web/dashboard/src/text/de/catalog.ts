import type { Texts } from '../en';

export const catalog: Texts['catalog'] = {
  title: 'Katalog',
  search: 'Anwendungen suchen',
  category: 'Kategorie',
  all: 'Alle Kategorien',
  none: 'Der Katalog ist leer',
  noneWhat: 'Anwendungen kommen in Paketen: Zip-Archive mit Klassen, Formularen und einem Logo. Importieren Sie eines, um zu beginnen.',
  noMatch: 'Keine Anwendung passt',
  clear: 'Suche und Kategorie löschen',
  by: (author) => `von ${author}`,
  addingTo: (name) => `Wählen Sie die Anwendung, die zu ${name} hinzugefügt werden soll.`,
  backToEnvironment: 'Zurück zur Umgebung',
};

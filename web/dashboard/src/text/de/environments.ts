import type { Texts } from '../en';

export const environments: Texts['environments'] = {
  title: 'Umgebungen',
  name: 'Name',
  status: 'Zustand',
  created: 'Angelegt',
  updated: 'Geändert',
  filter: 'Nach Namen filtern',
  create: 'Umgebung anlegen',
  none: 'Noch keine Umgebungen',
  noneWhat: 'Eine Umgebung enthält Anwendungen, die zusammen deployt werden. Legen Sie eine an, oder beginnen Sie im Katalog.',
  noMatch: 'Keine Umgebung passt',
  clear: 'Filter löschen',
  states: {
    ready: 'Bereit',
    pending: 'Hat nicht deployte Änderungen',
    deploying: 'Wird deployt',
    'deploy failure': 'Deployment fehlgeschlagen',
    deleting: 'Wird gelöscht',
    'delete failure': 'Löschen fehlgeschlagen',
  },
};

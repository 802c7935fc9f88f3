import type { Texts } from '../en';
import { shell } from './shell';

export const quotas: Texts['quotas'] = {
  title: shell.quotas,
  what: 'Wie viel ein Projekt haben darf, und hat.',
  project: 'Projekt',
  other: 'Ein anderes Projekt, nach seiner ID',
  unlimited: (used) => `${used}, ohne Grenze`,
  used: (used, limit) => `${used} von ${limit}`,
  ownLimit: 'eigene Grenze',
  notYours: 'Diese Grenzen ändern Administratoren.',
  edit: 'Grenzen ändern',
  editWhat: '-1 heißt unbegrenzt. Ein Projekt behält, was es hat, wenn eine Grenze sinkt.',
  save: 'Speichern',
  reset: 'Zurück zu den Einstellungen des Servers',
  resources: {
    environments: 'Umgebungen',
    sessions: 'Offene Entwürfe',
    templates: 'Vorlagen',
    packages: 'Pakete',
    package_bytes: 'Größe der Pakete',
    snapshot_bytes: 'Größe der Snapshots',
  },
};

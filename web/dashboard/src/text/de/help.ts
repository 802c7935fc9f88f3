import type { Texts } from '../en';
import { shell } from './shell';

export const help: Texts['help'] = {
  title: shell.help,
  about: (page) => `Hilfe: ${page}`,
  search: 'In den Dokumenten suchen',
  pages: 'Dokumente (englisch)',
  readers: { users: 'Für Benutzer', authors: 'Für Autoren von Paketen', operators: 'Für Betreiber', contributors: 'Für Mitwirkende' },
  sections: 'In diesem Kapitel',
  neighbours: 'Kapitel davor und danach',
  before: (title) => `← ${title}`,
  next: (title) => `${title} →`,
  nothing: 'Kein Dokument enthält diese Wörter',
  below: (document, section) => `${document}: ${section}`,
  gone: 'Dieses Dokument gibt es nicht',
  goneWhat: 'Wählen Sie eines aus der Liste.',
  toContents: 'Inhaltsverzeichnis',
};

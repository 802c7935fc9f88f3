import type { Texts } from '../en';

export const palette: Texts['palette'] = {
  title: 'Gehe zu oder tue',
  placeholder: 'Seite, Umgebung, Anwendung oder Handlung',
  nothing: 'Nichts heißt so.',
  page: 'Seite',
  environment: 'Umgebung',
  application: 'Anwendung des Katalogs',
  action: 'Handlung',
  theme: (name) => `Darstellung: ${name}`,
  keyboard: 'Tastatur',
  about: 'Über Burano',
  api: 'Version der API',
  version: 'Version',
  licence: 'Lizenz',
  licences: 'Lizenzen dessen, woraus das Dashboard gebaut ist',
  keys: [
    { key: 'Strg+K, ⌘K', what: 'Eine Seite, Umgebung, Anwendung oder Handlung suchen' },
    { key: '?', what: 'Diese Tasten zeigen' },
    { key: 'Tab', what: 'Zum nächsten Bedienelement; mit Umschalt zum vorigen' },
    { key: '↑ ↓', what: 'In Menüs, Listen und Reitern wählen' },
    { key: 'Enter', what: 'Tun, was gewählt ist' },
    { key: 'Esc', what: 'Einen Dialog oder ein Menü schließen' },
  ],
};

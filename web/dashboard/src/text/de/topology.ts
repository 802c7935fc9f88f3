import type { Texts } from '../en';

export const topology: Texts['topology'] = {
  title: 'Topologie',
  none: 'Noch nichts zu zeichnen',
  noneWhat: 'Fügen Sie Anwendungen hinzu, und deployen Sie sie: Woraus sie bestehen, wird hier gezeichnet.',
  legend:
    'Durchgezogene Linien führen zu den Teilen eines Objekts, gestrichelte Pfeile zu den Objekten, auf die es verweist. Das Symbol an der Ecke zeigt den Zustand; ein Objekt ohne Symbol wird nicht beobachtet oder ist noch nicht deployt.',
  zoomIn: 'Vergrößern',
  zoomOut: 'Verkleinern',
  fit: 'Alles zeigen',
  reset: 'Ursprüngliche Größe',
  save: 'Als SVG speichern',
  objects: 'Objekte',
  find: 'Objekt suchen',
  noMatch: 'Kein Objekt passt. Alle zeigen',
  open: 'Seine Seite öffnen',
  openOwner: 'Ihre Komponente öffnen',
  kinds: { application: 'Anwendung', server: 'Server', network: 'Netz', volume: 'Volume', address: 'Floating IP', part: 'Teil' },
  states: { ok: 'in Ordnung', changing: 'wird geändert', warning: 'hat Warnungen', failed: 'fehlgeschlagen', waiting: 'noch nicht deployt', none: '' },
};

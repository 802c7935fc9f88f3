import type { Texts } from '../en';

export const topology: Texts['topology'] = {
  title: 'Topologie',
  none: 'Noch nichts zu zeichnen',
  noneWhat: 'Fügen Sie Anwendungen hinzu, und deployen Sie sie: Woraus sie bestehen, wird hier gezeichnet.',
  legend:
    'Durchgezogene Linien führen zu dem, was ein Objekt enthält, gestrichelte Pfeile zu dem, worauf es sich bezieht. Ein Zeichen an der Ecke sagt, wie es einem Objekt geht; eines ohne Zeichen wird nicht beobachtet oder ist noch nicht da.',
  zoomIn: 'Vergrößern',
  zoomOut: 'Verkleinern',
  fit: 'Alles zeigen',
  reset: 'Ursprüngliche Größe',
  save: 'Als SVG speichern',
  objects: 'Objekte',
  find: 'Objekt suchen',
  noMatch: 'Kein Objekt passt. Alle zeigen',
  open: 'Seine Seite öffnen',
  openOwner: 'Öffnen, wohin sie führt',
  kinds: { application: 'Anwendung', server: 'Server', network: 'Netz', volume: 'Volume', address: 'Floating IP', part: 'Teil' },
  states: { ok: 'in Ordnung', changing: 'wird geändert', warning: 'hat Warnungen', failed: 'fehlgeschlagen', waiting: 'noch nicht da', none: '' },
};

import type { Texts } from '../en';

export const compare: Texts['compare'] = {
  title: 'Vergleich zweier Läufe',
  compare: 'Vergleichen',
  earlier: 'Früherer Lauf',
  later: 'Späterer Lauf',
  difference: 'Unterschied',
  changes: 'Was deployt wurde',
  noChanges: 'Beide Läufe haben dieselbe Beschreibung deployt.',
  noSteps: 'Keiner der Läufe hatte Schritte.',
  kinds: { added: 'Hinzugefügt', changed: 'Geändert', removed: 'Entfernt' },
  verdicts: { slower: 'Langsamer', faster: 'Schneller', same: 'Wie zuvor', new: 'Neu', gone: 'Weggefallen' },
};

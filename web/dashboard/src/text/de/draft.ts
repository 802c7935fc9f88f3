import type { Texts } from '../en';

export const draft: Texts['draft'] = {
  undeployed: 'Ihr Entwurf hat Änderungen, die nicht deployt sind',
  problems: (count) => (count === 1 ? 'Ihr Entwurf kann nicht deployt werden: ein Problem' : `Ihr Entwurf kann nicht deployt werden: ${count} Probleme`),
  nothing: 'Er unterscheidet sich in nichts von dem, was deployt ist.',
  counts: (added, changed, removed) => `Anwendungen: ${added} neu, ${changed} geändert, ${removed} entfernt.`,
  which: (count) => (count === 1 ? 'Die Änderung' : `Die ${count} Änderungen`),
  kinds: { added: 'Neu', changed: 'Geändert', removed: 'Entfernt' },
  environment: 'die Umgebung selbst',
  discard: 'Entwurf verwerfen',
  discardTitle: 'Ihren Entwurf verwerfen?',
  discardWhat: 'Alle Änderungen, die nicht deployt sind, gehen verloren. Was deployt ist, bleibt, wie es ist.',
  outdated: 'Ihr Entwurf ist veraltet',
  outdatedWhat: 'Jemand anderes hat diese Umgebung deployt, seit Sie begonnen haben; Ihr Entwurf kann nicht mehr deployt werden. Die Seite zeigt, was deployt ist.',
  discardOutdated: 'Verwerfen',
  remove: 'Entfernen',
  removeOf: (name) => `${name} aus dem Entwurf entfernen`,
  removeTitle: (name) => `${name} entfernen?`,
  removeWhat: 'Es verlässt jetzt Ihren Entwurf. Was es in der Cloud hat, wird beim Deployen gelöscht.',
  add: 'Anwendung hinzufügen',
};

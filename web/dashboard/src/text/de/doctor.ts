import type { Texts } from '../en';
import { shell } from './shell';

const number = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;

export const doctor: Texts['doctor'] = {
  title: shell.doctor,
  what: 'Ob dieser Server und seine Cloud haben, was Umgebungen und Cluster brauchen, und was hilft, wo es fehlt.',
  again: 'Erneut prüfen',
  summary: (failed, warnings) =>
    failed + warnings === 0
      ? 'Alle Prüfungen sind bestanden.'
      : [failed > 0 && number(failed, 'Prüfung fehlgeschlagen', 'Prüfungen fehlgeschlagen'), warnings > 0 && number(warnings, 'Warnung', 'Warnungen')].filter(Boolean).join(', ') + '.',
  state: 'Zustand',
  check: 'Was',
  found: 'Was gefunden wurde',
  states: { ok: 'In Ordnung', warning: 'Warnung', failed: 'Fehlgeschlagen' },
  remedy: (text) => `Zu tun: ${text}`,
};

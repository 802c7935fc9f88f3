import type { Texts } from '../en';
import { shell } from './shell';

export const audit: Texts['audit'] = {
  title: shell.audit,
  what: 'Wer was getan hat, das Neueste zuerst. Administratoren sehen alles, andere das ihres Projekts, wo die Regeln es erlauben.',
  filters: 'Filter',
  any: 'Beliebig',
  outcome: 'Ergebnis',
  outcomes: { success: 'Getan', failure: 'Abgelehnt' },
  outcomeOf: (outcome, code) => (code ? `${outcome} (${code})` : outcome),
  fields: {
    action: 'Handlung, etwa create',
    user: 'ID des Benutzers',
    project: 'ID des Projekts',
    target: 'ID dessen, womit es geschah',
    request: 'ID der Anfrage',
  },
  since: 'Seit',
  until: 'Bis',
  none: 'Nichts, was geschah, passt',
  clear: 'Filter löschen',
  when: 'Wann',
  who: 'Wer',
  action: 'Was',
  target: 'Womit',
  request: 'Anfrage',
};

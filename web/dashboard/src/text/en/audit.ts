import { shell } from './shell';

export const audit = {
  title: shell.audit,
  what: 'Who has done what, newest first. Administrators see all, others their project’s where the policy lets them.',
  filters: 'Filters',
  any: 'Any',
  outcome: 'Outcome',
  outcomes: { success: 'Done', failure: 'Refused' },
  outcomeOf: (outcome: string, code: string) => (code ? `${outcome} (${code})` : outcome),
  fields: {
    action: 'Action, such as create',
    user: 'Id of the user',
    project: 'Id of the project',
    target: 'Id of what it was done to',
    request: 'Id of the request',
  },
  since: 'Since',
  until: 'Until',
  none: 'Nothing was done that matches',
  clear: 'Clear the filters',
  when: 'When',
  who: 'Who',
  action: 'What',
  target: 'To what',
  request: 'Request',
};

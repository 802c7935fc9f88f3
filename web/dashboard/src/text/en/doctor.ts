import { shell } from './shell';

const number = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;

export const doctor = {
  title: shell.doctor,
  what: 'Whether this server and its cloud have what environments and clusters need, and what mends what is not well.',
  again: 'Look again',
  summary: (failed: number, warnings: number) =>
    failed + warnings === 0 ? 'All checks passed.' : [failed > 0 && number(failed, 'check failed', 'checks failed'), warnings > 0 && number(warnings, 'warning', 'warnings')].filter(Boolean).join(', ') + '.',
  state: 'State',
  check: 'What',
  found: 'What was found',
  states: { ok: 'Well', warning: 'Warning', failed: 'Failed' },
  remedy: (text: string) => `To do: ${text}`,
};

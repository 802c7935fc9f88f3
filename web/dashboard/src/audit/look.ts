// The address of the audit page. It is read before the page is loaded.

export const outcomes = ['success', 'failure'] as const;

export interface Look {
  outcome?: (typeof outcomes)[number];
  action?: string;
  user?: string;
  project?: string;
  target?: string;
  request?: string;
  /** Local times as browsers' fields write them: 2026-11-22T10:00. */
  since?: string;
  until?: string;
  after?: string;
}

export const fields = ['action', 'user', 'project', 'target', 'request'] as const;

export function readLook(search: Record<string, unknown>): Look {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  const time = (name: string) => (Number.isNaN(Date.parse(text(name) ?? '')) ? undefined : text(name));
  return {
    outcome: outcomes.find((one) => one === search.outcome),
    action: text('action'),
    user: text('user'),
    project: text('project'),
    target: text('target'),
    request: text('request'),
    since: time('since'),
    until: time('until'),
    after: text('after'),
  };
}

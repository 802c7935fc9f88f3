import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import { markerOf } from '../shell/paging';

export type AuditEvent = Schema<'AuditEvent'>;

export const outcomes = ['success', 'failure'] as const;

/** What the address of the audit says. */
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

export function queryOf(look: Look) {
  const marker = markerOf(look.after);
  const instant = (local: string) => new Date(local).toISOString();
  return {
    limit: 50,
    ...(marker && { marker }),
    ...(look.outcome && { outcome: look.outcome }),
    ...(look.action && { action: look.action }),
    ...(look.user && { user_id: look.user }),
    ...(look.project && { project_id: look.project }),
    ...(look.target && { target_id: look.target }),
    ...(look.request && { request_id: look.request }),
    ...(look.since && { since: instant(look.since) }),
    ...(look.until && { until: instant(look.until) }),
  };
}

export const auditQuery = (look: Look) =>
  queryOptions({
    queryKey: ['audit', look],
    queryFn: ({ signal }) => answered(api.GET('/burano/v1/audit', { signal, params: { query: queryOf(look) } })),
    placeholderData: keepPreviousData,
  });

import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import { markerOf } from '../shell/paging';
import type { Look } from './look';

export type AuditEvent = Schema<'AuditEvent'>;

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

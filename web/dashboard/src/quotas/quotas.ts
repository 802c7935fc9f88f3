import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Quotas = Schema<'ProjectQuotas'>;
export type Quota = NonNullable<Quotas['quotas']>[string];

export const quotasQuery = (project: string) =>
  queryOptions({
    queryKey: ['quotas', project],
    queryFn: () => answered(api.GET('/burano/v1/quotas/{project}', { params: { path: { project } } })),
  });

export const setQuotas = (project: string, limits: Record<string, number>): Promise<Quotas> =>
  answered(api.PUT('/burano/v1/quotas/{project}', { params: { path: { project } }, body: limits }));

export const resetQuotas = (project: string): Promise<Quotas> => answered(api.DELETE('/burano/v1/quotas/{project}', { params: { path: { project } } }));

/** How full a quota is, in percent from 0 to 100; null where there is no limit. A limit of 0 is full. */
export function fullness({ limit = -1, used = 0 }: Quota): number | null {
  if (limit < 0) return null;
  if (limit === 0) return 100;
  return Math.min(100, Math.round((used / limit) * 100));
}

/** How bad that is. */
export const severity = (percent: number | null): 'danger' | 'warning' | undefined =>
  percent === null || percent < 80 ? undefined : percent < 100 ? 'warning' : 'danger';

/**
 * Reads typed limits: the ones that differ from the present ones; null when one of them is no whole number from -1.
 */
export function changedLimits(typed: Record<string, string>, now: Record<string, Quota>): Record<string, number> | null {
  const changed: Record<string, number> = {};
  for (const [resource, text] of Object.entries(typed)) {
    if (!/^(-1|\d{1,15})$/.test(text.trim())) return null;
    const limit = Number(text);
    if (limit !== now[resource]?.limit) changed[resource] = limit;
  }
  return changed;
}

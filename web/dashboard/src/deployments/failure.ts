// Why a deployment failed.
import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';
import type { Report } from '../api/follow';
import type { Deployment } from './deployments';

/** One reason of a failure. */
export interface Cause {
  sentence: string;
  /** The id of the object that failed; '' where none is known. */
  object: string;
}

/** The errors among reports, each once, in their order. */
export function causesOf(reports: Report[]): Cause[] {
  const causes = new Map<string, Cause>();
  for (const report of reports) {
    if (report.level !== 'error') continue;
    const cause = { sentence: sentenceOf(report), object: report.entity_id ?? '' };
    causes.set(`${cause.object} ${cause.sentence}`, cause);
  }
  return [...causes.values()];
}

const method = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+: /;
const exceptions = /^\[[\w., ]+\]: /;

/** The sentence of an error without the method that it comes from and the names of an exception; the log has both. */
function sentenceOf({ text = '', entity_id: about }: Report): string {
  const rest = text.replace(method, '');
  const sentence = rest.replace(exceptions, '');
  if (sentence !== rest) return sentence;
  return about ? rest : text; // a name with dots may be that of a host
}

/** The failed run that the user of an environment must know: the newest one, else the newest deployment. An action ends no failure of a deployment. */
export function failureOf(runs: Deployment[]): Deployment | null {
  const deployment = runs.find((run) => run.action?.method === 'deploy');
  return [runs[0], deployment].find((run) => run?.state === 'completed_w_errors') ?? null;
}

/** How many of the last reports of a failed deployment are read for its causes. */
const last = 50;

/** The causes of a failed deployment. */
export const causesQuery = (environment: string, deployment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'deployments', deployment, 'causes'],
    queryFn: async () => {
      const query = { limit: last, sort: 'created:desc' };
      const asked = api.GET('/v1/environments/{environment}/deployments/{deployment}', { params: { path: { environment, deployment }, query } });
      return causesOf(((await answered(asked)).reports ?? []).reverse());
    },
    staleTime: Infinity,
  });

// The findings of environments, from the server's keepers.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Finding = Schema<'Finding'>;

export type Severity = Finding['severity'];

/** From the worst on. */
export const severities = ['critical', 'warning', 'info'] as const satisfies readonly Severity[];

/** How often it is asked again: the keepers look about once a minute. */
const every = 20_000;

/** The findings of an environment, the worst first. */
export const findingsQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'findings'],
    queryFn: async () =>
      (await answered(api.GET('/burano/v1/environments/{environment}/findings', { params: { path: { environment } } }))).findings,
    refetchInterval: every,
  });

/** The findings of all environments of the project. */
export const projectFindingsQuery = queryOptions({
  queryKey: ['findings'],
  queryFn: async () => (await answered(api.GET('/burano/v1/findings'))).findings,
  refetchInterval: every,
});

/** The title of a finding: the words for its kind, with the name of its subject, else the server's. */
export function titleOf(finding: Finding, words: { titles: Record<string, string>; of: (title: string, name: string) => string }): string {
  const title = words.titles[finding.kind];
  if (!title) return finding.text;
  return finding.subject ? words.of(title, finding.subject) : title;
}

/** How many there are of each severity. */
export function counted(findings: readonly Finding[]): Record<Severity, number> {
  const counts = { critical: 0, warning: 0, info: 0 };
  for (const finding of findings) counts[finding.severity]++;
  return counts;
}

/** The worst severity among the findings that need attention, by environment. */
export function worst(findings: readonly Finding[]): Map<string, { severity: Severity; count: number }> {
  const found = new Map<string, { severity: Severity; count: number }>();
  for (const { environment_id: environment, severity } of findings) {
    if (severity === 'info') continue;
    const known = found.get(environment);
    const graver = !known || severities.indexOf(severity) < severities.indexOf(known.severity);
    found.set(environment, { severity: graver ? severity : known.severity, count: (known?.count ?? 0) + 1 });
  }
  return found;
}

// Names that applications begin with.
import { queryOptions, type QueryClient } from '@tanstack/react-query';

import { draftQuery, shownQuery } from '../draft/draft';
import { nameOf } from '../environments/environments';

/** The names that applications of an environment have, as its draft has it: asked once for each form. */
export const takenQuery = (client: QueryClient, user: string, environment: string) =>
  queryOptions({
    queryKey: ['taken names', user, environment],
    queryFn: async () => {
      const draft = await client.fetchQuery(draftQuery(user, environment));
      return ((await client.fetchQuery(shownQuery(environment, draft))).services ?? []).map(nameOf);
    },
    gcTime: 0,
    refetchOnWindowFocus: false,
  });

/** The name, or with the first number behind it that is free in the environment: "Hello", "Hello 2". */
export function freeName(wanted: string, taken: Iterable<string>): string {
  const all = new Set(taken);
  for (let count = 1; ; count++) {
    const name = count === 1 ? wanted : `${wanted} ${count}`;
    if (!all.has(name)) return name;
  }
}

// Environments of other projects, for users who may list them.
import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';
import { readAllProjects } from '../session/session';

/** The rule of the policy for listing the environments of all projects. */
export const listsAll = 'list_environments_all_tenants';

/** The environments of all projects, or of one of them. */
export const foreignQuery = (project: string | undefined) =>
  queryOptions({
    queryKey: ['environments', 'of projects', project ?? ''],
    queryFn: async () =>
      (await answered(api.GET('/burano/v1/environments', { params: { query: project ? { tenant: project } : { all_tenants: 'true' } } }))).environments,
    refetchInterval: 30_000,
  });

/** The names of projects, by their ids. Users who may not list them see ids. */
export const projectNamesQuery = queryOptions({
  queryKey: ['projects', 'names'],
  queryFn: () => readAllProjects().then((list) => new Map(list.map((one) => [one.id ?? '', one.name ?? '']))),
  staleTime: 60_000,
  retry: false,
});

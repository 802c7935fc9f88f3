// Whether Burano works in a project with a role of its own, or by trusts of users.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import type { SignedIn } from '../session/session';

export type ProjectRole = Schema<'ProjectRole'>;

export const projectRoleQuery = (project: string) =>
  queryOptions({
    queryKey: ['projects', project, 'role'],
    queryFn: () => answered(api.GET('/burano/v1/projects/{project}/role', { params: { path: { project } } })),
  });

export const enableProjectRole = (project: string): Promise<ProjectRole> =>
  answered(api.PUT('/burano/v1/projects/{project}/role', { params: { path: { project } } }));

export const disableProjectRole = (project: string): Promise<ProjectRole> =>
  answered(api.DELETE('/burano/v1/projects/{project}/role', { params: { path: { project } } }));

/** Whether the caller may change how Burano works in projects, by the default policy. The server decides. */
export const mayChange = (session: Pick<SignedIn, 'admin' | 'roles'>): boolean => (session.admin || session.roles?.includes('manager')) ?? false;

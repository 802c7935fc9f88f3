// The signed-in user.
import { createContext, useContext } from 'react';

import { answered, api, type Schema } from '../api/client';

export type SignedIn = Schema<'SignedIn'>;
export type Credentials = Schema<'SignIn'>;

export const sessionKey = ['session'];

export const readSession = (): Promise<SignedIn> => answered(api.GET('/burano/v1/session'));

export const signIn = (credentials: Credentials): Promise<SignedIn> =>
  answered(api.POST('/burano/v1/session', { body: credentials, params: { header: { 'X-Requested-With': '' } } }));

export const signOut = (): Promise<unknown> =>
  answered(api.DELETE('/burano/v1/session', { params: { header: { 'X-Requested-With': '' } } }));

export const chooseProject = (project: string): Promise<SignedIn> =>
  answered(api.PUT('/burano/v1/session/project', { body: { project }, params: { header: { 'X-Requested-With': '' } } }));

export const readProjects = async (): Promise<Schema<'Project'>[]> =>
  (await answered(api.GET('/burano/v1/session/projects'))).projects ?? [];

/** All projects of the cloud, which administrators may list. */
export const readAllProjects = async (): Promise<Schema<'Project'>[]> => (await answered(api.GET('/burano/v1/projects'))).projects;

export const Session = createContext<SignedIn | null>(null);

/** The signed-in user, with a chosen project: pages are shown to no others. */
export function useSession(): SignedIn {
  const session = useContext(Session);
  if (!session) throw new Error('a page is shown although nobody is signed in');
  return session;
}

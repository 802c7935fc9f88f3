// The caller's draft of an environment: an open session, whose id the browser remembers.
import { queryOptions, type QueryClient } from '@tanstack/react-query';

import { answered, api, ApiError, send, type Schema } from '../api/client';
import { deploymentsQuery, environmentQuery, environmentsQuery, openSession, type ObjectModel } from '../environments/environments';
import { needsLook, previewQuery, type Plan } from './plan';

/**
 * The state of a draft: an outdated one can only be discarded, because another deployment has run since it was begun.
 */
export interface Draft {
  session: string;
  state: 'opened' | 'outdated';
  /** Its deployment was refused before it changed anything. */
  rejected: boolean;
}

type Memory = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const keyOf = (user: string, environment: string): string => `burano.draft.${user}.${environment}`;

export const recall = (memory: Memory, user: string, environment: string): string => memory.getItem(keyOf(user, environment)) ?? '';

export function remember(memory: Memory, user: string, environment: string, session: string): void {
  if (session) memory.setItem(keyOf(user, environment), session);
  else memory.removeItem(keyOf(user, environment));
}

/** An open session of an environment, of any holder. */
export type OpenDraft = Schema<'Draft'>;

/** The state of the remembered draft among the open sessions of an environment; null if there is none any more. */
export function draftOf(session: string, open: OpenDraft[]): Draft | null {
  const found = open.find((one) => one.own && one.id === session);
  return found ? { session, state: found.outdated ? 'outdated' : 'opened', rejected: found.rejected } : null;
}

/** The caller's newest edit whose deployment was refused, unless it is the draft that is shown or is out of date; null for none. */
export function refusedOf(draft: Draft | null, open: OpenDraft[]): OpenDraft | null {
  const refused = open.filter((one) => one.own && one.rejected && !one.outdated && one.id !== draft?.session);
  return refused.reduce<OpenDraft | null>((newest, one) => (newest && newest.updated > one.updated ? newest : one), null);
}

/** Drafts of others, and of the same user made elsewhere, such as on the command line, but for the refused edit that is shown by itself. */
export function othersThan(draft: Draft | null, open: OpenDraft[]): OpenDraft[] {
  const shown = [draft?.session, refusedOf(draft, open)?.id];
  return open.filter((one) => !one.id || !shown.includes(one.id));
}

/** Others deploy and open drafts meanwhile. */
const lookAgain = 20_000;

/** The open sessions of an environment. */
export const openDraftsQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'open drafts'],
    queryFn: async () =>
      (await answered(api.GET('/burano/v1/environments/{environment}/sessions', { params: { path: { environment } } }))).sessions,
    refetchInterval: lookAgain,
  });

async function look(user: string, environment: string): Promise<Draft | null> {
  const session = recall(localStorage, user, environment);
  if (!session) return null;
  const open = await answered(api.GET('/burano/v1/environments/{environment}/sessions', { params: { path: { environment } } })).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return { sessions: [] }; // the environment is gone
    throw error;
  });
  const draft = draftOf(session, open.sessions);
  if (!draft) remember(localStorage, user, environment, '');
  return draft;
}

export const draftQuery = (user: string, environment: string) =>
  queryOptions({
    queryKey: ['drafts', user, environment],
    queryFn: () => look(user, environment),
    refetchInterval: (query) => (query.state.data ? lookAgain : false),
  });

/** Goes on with a draft that was begun elsewhere. */
export async function takeUp(client: QueryClient, user: string, environment: string, session: string): Promise<void> {
  remember(localStorage, user, environment, session);
  await client.invalidateQueries({ queryKey: draftQuery(user, environment).queryKey });
  await client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
}

/** The environment as its draft has it, else as it is deployed. */
export const shownQuery = (environment: string, draft: Draft | null) =>
  environmentQuery(environment, draft?.state === 'opened' ? draft.session : undefined);

/** Returns the draft, and whether it was opened now because there was none that can be used. */
export async function usableDraft(client: QueryClient, user: string, environment: string): Promise<{ draft: Draft; isNew: boolean }> {
  const former = await client.fetchQuery({ ...draftQuery(user, environment), staleTime: 0 });
  if (former?.state === 'opened') return { draft: former, isNew: false };
  const session = await openSession(environment);
  remember(localStorage, user, environment, session);
  const draft: Draft = { session, state: 'opened', rejected: false };
  client.setQueryData(draftQuery(user, environment).queryKey, draft);
  void client.invalidateQueries({ queryKey: openDraftsQuery(environment).queryKey });
  return { draft, isNew: true };
}

const sessionFor = async (client: QueryClient, user: string, environment: string): Promise<string> =>
  (await usableDraft(client, user, environment)).draft.session;

/** Throws the draft away. One that is gone already is as good as thrown away; an outdated one the server only lets be forgotten. */
export async function discard(client: QueryClient, user: string, environment: string, draft: Draft): Promise<void> {
  try {
    await deleteSession(environment, draft.session);
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 404 && draft.state !== 'outdated')) throw error;
  }
  await forget(client, user, environment, draft.session);
}

/** Throws another draft of one's own away. */
export async function discardOther(client: QueryClient, environment: string, session: string): Promise<void> {
  await deleteSession(environment, session);
  await client.invalidateQueries({ queryKey: openDraftsQuery(environment).queryKey });
}

const deleteSession = (environment: string, session: string): Promise<unknown> =>
  answered(api.DELETE('/v1/environments/{environment}/sessions/{session}', { params: { path: { environment, session } }, parseAs: 'text' }));

async function forget(client: QueryClient, user: string, environment: string, session: string): Promise<void> {
  remember(localStorage, user, environment, '');
  client.setQueryData(draftQuery(user, environment).queryKey, null);
  // The data of the draft itself are not requested again.
  await client.invalidateQueries({ queryKey: environmentsQuery.queryKey, predicate: (query) => !query.queryKey.includes(session) });
}

/** Deploys a draft as its plan was shown, with consent to all losses of it, and returns the id of the deployment. */
export async function deploy(client: QueryClient, user: string, environment: string, session: string, { plan, consents }: Plan): Promise<string> {
  const query = { plan, allow_destroy: consents.map((one) => one.object_id) };
  await answered(
    api.POST('/v1/environments/{environment}/sessions/{session}/deploy', { params: { path: { environment, session }, query }, parseAs: 'text' }),
  );
  await forget(client, user, environment, session);
  return (await client.fetchQuery({ ...deploymentsQuery(environment), staleTime: 0 }))[0]?.id ?? '';
}

/**
 * Deploys the draft, or the deployed model once more, if its plan needs no look, and returns the id of the deployment;
 * '' if a user has to look first.
 */
export async function deployUnseen(client: QueryClient, user: string, environment: string): Promise<string> {
  const { draft, isNew } = await usableDraft(client, user, environment);
  const plan = await client.fetchQuery({ ...previewQuery(environment, draft.session), staleTime: 0 });
  if (!needsLook(plan)) return deploy(client, user, environment, draft.session, plan);
  if (isNew) await discard(client, user, environment, draft);
  return '';
}

/**
 * Requests the shown data of the draft again. An answer in flight may be older than the change: it is dropped, which
 * invalidating alone would not do.
 */
async function changed(client: QueryClient): Promise<void> {
  await client.cancelQueries({ queryKey: environmentsQuery.queryKey });
  await client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
}

/** Puts an application into the draft. */
export async function addApplication(client: QueryClient, user: string, environment: string, model: ObjectModel): Promise<void> {
  const session = await sessionFor(client, user, environment);
  await answered(
    api.POST('/v1/environments/{environment}/services', {
      params: { path: { environment }, header: { 'X-Configuration-Session': session } },
      body: model,
    }),
  );
  await changed(client);
}

/** Sets the metadata of an application in the draft. */
export async function setMetadata(client: QueryClient, user: string, environment: string, id: string, metadata: Record<string, unknown>): Promise<void> {
  const session = await sessionFor(client, user, environment);
  // A part of the address is a question mark, which the typed client takes for the beginning of a query.
  await send(`/v1/environments/${encodeURIComponent(environment)}/services/${encodeURIComponent(id)}/%3F/metadata`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json', 'X-Configuration-Session': session },
    body: JSON.stringify(metadata),
  });
  await changed(client);
}

/** Changes a component in the draft by a request that is given the draft's session. */
export async function inDraft<T>(client: QueryClient, user: string, environment: string, change: (session: string) => Promise<T>): Promise<T> {
  const session = await sessionFor(client, user, environment);
  const result = await change(session);
  await changed(client);
  return result;
}

/**
 * Sets properties of an object in the draft, each by itself: the object's other values stay as they are. path leads
 * to it below the applications.
 */
export async function setProperties(
  client: QueryClient,
  user: string,
  environment: string,
  path: string[],
  properties: Record<string, unknown>,
): Promise<string> {
  const session = await sessionFor(client, user, environment);
  for (const [name, value] of Object.entries(properties)) {
    const at = [...path, name].map(encodeURIComponent).join('/');
    await send(`/v1/environments/${encodeURIComponent(environment)}/services/${at}`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json', 'X-Configuration-Session': session },
      body: JSON.stringify(value),
    });
  }
  await changed(client);
  return session;
}

/**
 * Takes an application out of the draft. The server takes a DELETE of its path as consent to all losses, so this
 * patches the model: the deployment's dialog lists the losses and asks.
 */
export async function removeApplication(client: QueryClient, user: string, environment: string, id: string): Promise<void> {
  const session = await sessionFor(client, user, environment);
  const { services = [] } = await client.fetchQuery({ ...environmentQuery(environment, session), staleTime: 0 });
  const at = services.findIndex((one) => one['?']?.id === id);
  if (at >= 0) {
    await send(`/v1/environments/${encodeURIComponent(environment)}/model/`, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/env-model-json-patch', 'X-Configuration-Session': session },
      body: JSON.stringify([{ op: 'remove', path: `/services/${at}`, value: null }]),
    });
  }
  await changed(client);
}

export interface Counts {
  added: number;
  changed: number;
  removed: number;
}

/** Counts the applications that a draft adds, changes and removes: a change of a part changes its application. */
export function countChanges(changes: Schema<'Change'>[]): Counts {
  const whole = /^services\[\d+\]$/;
  const roots = { added: new Set<string>(), changed: new Set<string>(), removed: new Set<string>() };
  for (const change of changes) {
    if (change.change && whole.test(change.path ?? '')) roots[change.change].add(change.path ?? '');
  }
  for (const change of changes) {
    const root = /^services\[\d+\]/.exec(change.path ?? '')?.[0] ?? '';
    if (!root || root === change.path) continue;
    const owners = change.change === 'removed' ? roots.removed : roots.added;
    if (!owners.has(root)) roots.changed.add(root);
  }
  return { added: roots.added.size, changed: roots.changed.size, removed: roots.removed.size };
}

// The objects of a deployed environment, and their data.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import { classOf, isBusy, type EnvironmentDetails, type ObjectModel } from '../environments/environments';
import { walk } from '../environments/objects';

/** The header of a deployed object, besides its class and its id. */
export interface Header {
  id?: string;
  type?: string;
  name?: string | null;
  metadata?: unknown;
  _actions?: Record<string, { name?: string; title?: string; description?: string; helpText?: string; deprecated?: string; enabled?: boolean }>;
}

export const headerOf = (object: ObjectModel): Header => (object['?'] ?? {}) as Header;

const clusterClass = 'com.mirantis.docker.kubernetes.KubernetesCluster';
const gatewaysClass = 'io.burano.Gateways';

/** Gateways without a cluster: they have the nodes, routes and certificates of clusters. */
export const standsAlone = (object: ObjectModel | undefined): boolean => object !== undefined && classOf(object) === gatewaysClass;

/** Whether an object is a cluster, also of a class that extends the one of clusters: it has the lists of nodes of a cluster. */
const isCluster = (object: ObjectModel): boolean => classOf(object) === clusterClass || (Array.isArray(object.minionNodes) && typeof object.masterNode === 'object');

/** Whether an object is made of nodes, which have a page. */
export const hasNodes = (object: ObjectModel): boolean => isCluster(object) || standsAlone(object);

/** An object with its enclosing objects, the outermost first. */
export interface Found {
  object: ObjectModel;
  owners: ObjectModel[];
}

/** Finds an object of a model by its id. */
export function findObject(model: unknown, id: string): Found | null {
  const owners = new Map<ObjectModel, ObjectModel | null>();
  let found: ObjectModel | null = null;
  walk(model, (object, owner) => {
    owners.set(object, owner);
    if (object['?']?.id === id) found ??= object;
  });
  if (!found) return null;
  const above: ObjectModel[] = [];
  for (let owner = owners.get(found); owner; owner = owners.get(owner)) above.unshift(owner);
  return { object: found, owners: above };
}

/** The ids of an object and of all that it holds. */
export function idsIn(object: ObjectModel): string[] {
  const ids: string[] = [];
  walk(object, (each) => ids.push(each['?']?.id ?? ''));
  return ids.filter(Boolean);
}

/** Whether a name is that of a secret, as the server masks them: by Murano's words, or as some kind of key that is not public. */
export function isSecret(name: string): boolean {
  const lower = name.toLowerCase();
  if (lower.endsWith('key') && lower !== 'key' && !lower.includes('public')) return true;
  return ['pass', 'token', 'secret', 'private', 'trustid', 'credential'].some((word) => lower.includes(word));
}

const ipv4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/** Where a value leads to, when it is a web address, or a floating address at which a browser may find something. */
export function linkOf(name: string, value: string): string | null {
  if (/^https?:\/\/\S+$/i.test(value)) return value;
  if (/floating/i.test(name) && ipv4.test(value)) return `http://${value}/`;
  return null;
}

/** Where an application answers from outside of its cluster, as addresses for a browser: its public ports of TCP through the gateways. */
export function endpointsOf(object: ObjectModel): string[] {
  const endpoints = (object as Record<string, unknown>).applicationEndpoints;
  if (!Array.isArray(endpoints)) return [];
  const urls = (endpoints as (Record<string, unknown> | null)[]).flatMap((one) => {
    if (one?.scope !== 'public' || one.protocol !== 'TCP' || typeof one.address !== 'string' || typeof one.port !== 'number') return [];
    const url = `${one.port === 443 ? 'https' : 'http'}://${one.address}:${one.port}/`;
    return URL.canParse(url) ? [url] : [];
  });
  return [...new Set(urls)];
}

/** Each component's last report, by the component's id. */
export const lastReportsQuery = (environment: string, details: EnvironmentDetails | undefined) =>
  queryOptions({
    queryKey: ['environments', environment, 'last reports'],
    queryFn: async () =>
      (await answered(api.GET('/v1/environments/{environment}/lastStatus', { params: { path: { environment } } }))).lastStatuses ?? {},
    refetchInterval: isBusy(details) ? 2_000 : false,
  });

export type States = Awaited<ReturnType<typeof askStates>>;
export type Component = Schema<'Component'>;
export type ComponentRun = Schema<'ComponentRun'>;

const askStates = (environment: string, session: string | undefined) =>
  answered(
    api.GET('/burano/v1/environments/{environment}/components', {
      params: { path: { environment }, header: session ? { 'X-Configuration-Session': session } : {} },
    }),
  );

/** The states of an environment and its components, as it is deployed, or with a session as its draft has it. Findings change them at any time. */
export const statesQuery = (environment: string, session: string | undefined, isBusy: boolean) =>
  queryOptions({
    queryKey: ['environments', environment, 'states', session ?? 'deployed', isBusy],
    queryFn: () => askStates(environment, session),
    placeholderData: (former: States | undefined, query?: { queryKey: readonly unknown[] }) => (query?.queryKey[1] === environment ? former : undefined),
    refetchInterval: (query) => (isBusy || (query.state.data && changes(query.state.data)) ? 2_000 : 20_000),
  });

const changes = ({ state, components }: States): boolean =>
  [state, ...components.map((one) => one.state)].some((one) => one === 'deploying' || one === 'deleting');

/** A failure that a component, or the environment by itself ('' as its id), is left in. */
export interface Failure {
  component: string;
  name: string;
  run: ComponentRun;
}

/** The failures that an environment is left in, the newest first: of deployments, and of actions. */
export function failuresOf({ deployment, failures, components }: Pick<States, 'deployment' | 'failures' | 'components'>): Failure[] {
  const found = [{ id: '', name: '', deployment, failures }, ...components].flatMap(({ id, name, deployment: last, failures: actions }) =>
    [...(last?.failed ? [last] : []), ...actions].map((run) => ({ component: id, name, run })),
  );
  return found.toSorted((a, b) => (a.run.finished < b.run.finished ? 1 : a.run.finished > b.run.finished ? -1 : 0));
}

/** The whole model of an environment: its networks and regions too. */
export const modelQuery = (environment: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'model'],
    queryFn: () => answered(api.GET('/v1/environments/{environment}/model', { params: { path: { environment } } })),
  });

/** The package that a class is from; asked once for each class. */
export const packageOfClassQuery = (className: string) =>
  queryOptions({
    queryKey: ['packages', 'of class', className],
    queryFn: async () =>
      (await answered(api.GET('/burano/v1/packages', { params: { query: { class_name: className, limit: 1 } } }))).packages?.[0] ?? null,
    staleTime: Infinity,
  });

export type LastReports = Record<string, Schema<'Report'> | null | undefined>;

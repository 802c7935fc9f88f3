// The objects of a deployed environment, and their data.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import { classOf, isBusy, type EnvironmentDetails, type EnvironmentState, type ObjectModel } from '../environments/environments';
import { walk } from '../environments/objects';

/** The header of a deployed object, besides its class and its id. */
export interface Header {
  id?: string;
  type?: string;
  name?: string | null;
  status?: EnvironmentState;
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

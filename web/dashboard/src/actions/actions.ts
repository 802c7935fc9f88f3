// Actions: the offers of deployed objects, and their results.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import { headerOf } from '../components/components';
import type { ObjectModel } from '../environments/environments';

export interface Action {
  /** By which the API knows it: the id of the object and the method. */
  id: string;
  method: string;
  title: string;
  description: string;
  /** Its replacement, where a coming release does not have it; else empty. */
  deprecated: string;
}

/** The actions of an object that are enabled, by their titles; deprecated ones come last. */
export function actionsOf(object: ObjectModel): Action[] {
  return Object.entries(headerOf(object)._actions ?? {})
    .filter(([, action]) => action.enabled !== false)
    .map(([id, action]) => {
      const method = action.name ?? id.slice(id.indexOf('_') + 1);
      return { id, method, title: action.title || method, description: action.description ?? '', deprecated: action.deprecated ?? '' };
    })
    .sort((a, b) => Number(a.deprecated !== '') - Number(b.deprecated !== '') || a.title.localeCompare(b.title));
}

/** The actions with these methods, in this order. A former name is offered only by an object that a former release has deployed. */
export function actionsNamed(object: ObjectModel, methods: readonly string[]): Action[] {
  const all = actionsOf(object).filter((action) => !action.deprecated);
  return methods.flatMap((method) => all.filter((action) => action.method === method));
}

/**
 * Whether an action may destroy something, judging by its name: then it asks for a confirmation even if its package
 * has no warning.
 */
export const mayDestroy = (action: Action): boolean => /delete|destroy|remove|down$|drop|reset|wipe|erase|purge|recreate|restart|stop/i.test(action.method);

/** Whether an action takes something away for good, judging by its name: a list of many actions has it apart. */
export const losesData = (action: Action): boolean => /delete|destroy|remove|down$|drop|reset|wipe|erase|purge|^restore$|^recover/i.test(action.method);

/** Has an action run and returns its task's id. */
export const callAction = async (environment: string, action: string, args: Record<string, unknown>): Promise<string> =>
  (
    await answered(
      api.POST('/v1/environments/{environment}/actions/{action}', {
        params: { path: { environment, action } },
        body: args as Record<string, never>, // the description does not define the arguments
      }),
    )
  ).task_id ?? '';

export type Result = Schema<'Result'>;

export const resultQuery = (environment: string, task: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'results', task],
    queryFn: () => answered(api.GET('/v1/environments/{environment}/actions/{task}', { params: { path: { environment, task } } })),
    staleTime: Infinity,
  });

/** The methods of an object's class; requested once for each class. */
export const classActionsQuery = (type: string) =>
  queryOptions({
    queryKey: ['classes', type, 'actions'],
    queryFn: async () => {
      const { name, version, packageName } = partsOf(type);
      const query = { ...(packageName && { packageName }), ...(version && { classVersion: version }) };
      return (await answered(api.GET('/burano/v1/classes/{class}/actions', { params: { path: { class: name }, query } }))).actions;
    },
    staleTime: Infinity,
  });

/** The parts of a type as headers have it: io.example.App/1.0@io.example. */
export function partsOf(type: string): { name: string; version: string; packageName: string } {
  const [, name = '', version = '', packageName = ''] = /^([^/@]*)(?:\/([^@]*))?(?:@(.*))?$/.exec(type) ?? [];
  return { name, version, packageName };
}

/** The result of an action, in the form in which it is shown. */
export type Shown =
  | { kind: 'running' }
  | { kind: 'nothing' }
  | { kind: 'text'; text: string }
  | { kind: 'json'; json: string }
  | { kind: 'file'; name: string; mime: string; base64: string }
  | { kind: 'failure'; message: string; details: string };

export function shownOf(result: Result | undefined): Shown {
  if (!result || result.isException === undefined) return { kind: 'running' };
  const value = result.result as unknown;
  if (result.isException) {
    const { message, details } = (value ?? {}) as { message?: string; details?: string };
    return { kind: 'failure', message: message ?? String(value ?? ''), details: details ?? '' };
  }
  if (value === null || value === undefined) return { kind: 'nothing' };
  if (typeof value === 'string') return { kind: 'text', text: value };
  if (isFile(value)) return { kind: 'file', name: value.filename || 'file', mime: value.mimeType || 'application/octet-stream', base64: value.base64Content };
  return { kind: 'json', json: JSON.stringify(value, null, 2) };
}

interface File {
  filename?: string | null;
  mimeType?: string | null;
  base64Content: string;
}

const isFile = (value: unknown): value is File => {
  const { '?': header, base64Content } = value as { '?'?: { type?: string }; base64Content?: unknown };
  return partsOf(header?.type ?? '').name === 'io.murano.File' && typeof base64Content === 'string';
};

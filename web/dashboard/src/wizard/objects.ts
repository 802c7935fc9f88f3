// Objects that a field may refer to, and packages that provide such.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

/** A package of which an application may be added for a field. */
export type Provider = Schema<'Class'>['package'];

/** Applications that declare one of the classes, or one that extends it. */
export const providersQuery = (classes: string[]) =>
  queryOptions({
    queryKey: ['classes', 'extending', ...classes],
    queryFn: async () => {
      const answers = await Promise.all(classes.map((one) => answered(api.GET('/burano/v1/classes', { params: { query: { extends: one } } }))));
      return providersIn(answers.flatMap((answer) => answer.classes));
    },
    staleTime: 60_000,
  });

/** The applications among the packages of classes, each once, by their names. */
export function providersIn(classes: Schema<'Class'>[]): Provider[] {
  const byId = new Map(classes.map((one) => [one.package.id, one.package]));
  return [...byId.values()].filter((one) => one.type === 'Application').sort((a, b) => a.name.localeCompare(b.name));
}

/** The objects of an environment, or of its draft, that are of one of the classes. */
export const objectsQuery = (environment: string, session: string | undefined, classes: string[]) =>
  queryOptions({
    queryKey: ['environments', environment, session ?? 'deployed', 'objects', ...classes],
    queryFn: async () => {
      const answers = await Promise.all(
        classes.map((one) =>
          answered(
            api.GET('/burano/v1/environments/{environment}/objects', {
              params: { path: { environment }, query: { class: one }, header: session ? { 'X-Configuration-Session': session } : {} },
            }),
          ),
        ),
      );
      return distinct(answers.flatMap((answer) => answer.objects));
    },
  });

/** Objects each once: an object may be of several of the classes. */
export const distinct = (objects: Schema<'Object'>[]): Schema<'Object'>[] => [...new Map(objects.map((one) => [one.id, one])).values()];

/** An object's label: its name and its class. */
export function labelOf({ name, type }: Schema<'Object'>): string {
  const short = type.split('.').pop() ?? type;
  return name ? `${name} (${short})` : short;
}

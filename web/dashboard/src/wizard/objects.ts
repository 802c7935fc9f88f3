// Objects that a field may refer to, and packages that provide such.
import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';
import type { Package } from '../catalog/catalog';
import { classOf, type ObjectModel } from '../environments/environments';
import { walk } from '../environments/objects';

/** Packages that declare one of the classes. */
export const providersQuery = (classes: string[]) =>
  queryOptions({
    queryKey: ['packages', 'providers', ...classes],
    queryFn: async () => {
      const answers = await Promise.all(
        classes.map((one) => answered(api.GET('/v1/catalog/packages', { params: { query: { class_name: one, limit: 100 } } }))),
      );
      return providersIn(answers.flatMap((answer) => answer.packages ?? []));
    },
    staleTime: 60_000,
  });

/** Applications among packages, each once. */
export function providersIn(packages: Package[]): Package[] {
  const byId = new Map(packages.filter((one) => one.type === 'Application' && one.enabled !== false).map((one) => [one.id, one]));
  return [...byId.values()];
}

/** The objects of a draft that may be chosen: those of the classes, and those that are what a package is for which declares such a class. */
export function candidates(model: unknown, classes: string[], providers: Package[]): ObjectModel[] {
  const wanted = new Set([...classes, ...providers.map((one) => one.fully_qualified_name ?? '')]);
  const found: ObjectModel[] = [];
  walk(model, (object) => {
    if (wanted.has(classOf(object))) found.push(object);
  });
  return found;
}

// Packages of the catalog: what the API says of them.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Package = Schema<'Package'>;

/** Applications that can be put into environments, those of other projects too where they are public. */
export const applicationsQuery = (search: string, category: string) =>
  queryOptions({
    queryKey: ['packages', 'applications', search, category],
    queryFn: async () =>
      (
        await answered(
          api.GET('/v1/catalog/packages', {
            params: { query: { type: 'Application', catalog: 'true', limit: 100, order_by: 'name', ...(search && { search }), ...(category && { category }) } },
          }),
        )
      ).packages ?? [],
    placeholderData: (before) => before,
  });

export const categoriesQuery = queryOptions({
  queryKey: ['categories'],
  queryFn: async () => (await answered(api.GET('/v1/catalog/categories'))).categories ?? [],
});

export const logoOf = (one: Package): string => `/v1/catalog/packages/${encodeURIComponent(one.id ?? '')}/logo`;

export const packageQuery = (id: string) =>
  queryOptions({
    queryKey: ['packages', 'one', id],
    queryFn: () => answered(api.GET('/v1/catalog/packages/{id}', { params: { path: { id } } })),
  });

/** Packages of the same full name, the newest first. */
export const versionsQuery = (fullName: string) =>
  queryOptions({
    queryKey: ['packages', 'versions', fullName],
    queryFn: async () => {
      const { packages = [] } = await answered(api.GET('/v1/catalog/packages', { params: { query: { fqn: fullName, limit: 100 } } }));
      return packages.filter((one) => one.fully_qualified_name === fullName).toSorted((a, b) => (b.updated ?? '').localeCompare(a.updated ?? ''));
    },
    enabled: fullName !== '',
  });

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

// Packages of the catalog, from the API.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

/** A package; the facts of its files are unknown for one that was just uploaded or changed. */
export type Package = Schema<'Package'> & Partial<Schema<'DescribedPackage'>>;

/** Applications that can be added to environments, also public ones of other projects. */
export const applicationsQuery = (search: string, category: string) =>
  queryOptions({
    queryKey: ['packages', 'applications', search, category],
    queryFn: async () =>
      (
        await answered(
          api.GET('/burano/v1/packages', {
            params: { query: { type: 'Application', catalog: 'true', limit: 100, order_by: 'name', ...(search && { search }), ...(category && { category }) } },
          }),
        )
      ).packages ?? [],
    placeholderData: (before) => before,
  });

export type Need = Schema<'ApplicationNeeds'>;

/** The needs of applications that the cloud of the project does not meet, by packages. They come after the catalog: the cloud is asked for them. */
export const needsQuery = (region: string) =>
  queryOptions({
    queryKey: ['needs', region],
    queryFn: async () => {
      const { applications } = await answered(api.GET('/burano/v1/needs', { params: { query: region ? { region } : {} } }));
      return new Map(applications.map((one) => [one.id, one]));
    },
    staleTime: 60_000,
    retry: false,
  });

/** The applications that work here first, then the ones of which that is not known; their order stays otherwise. */
export const workingFirst = (list: Package[], needs: ReadonlyMap<string, Need>): Package[] => {
  const rank = (one: Package): number => {
    const { works } = needs.get(one.id ?? '') ?? {};
    return works === false ? 2 : works === true ? 0 : 1;
  };
  return list.toSorted((a, b) => rank(a) - rank(b));
};

export const categoriesQuery = queryOptions({
  queryKey: ['categories'],
  queryFn: async () => (await answered(api.GET('/v1/catalog/categories'))).categories ?? [],
});

/** Where the logo of a package is; '' where it has none. */
export const logoOf = (one: Package): string =>
  one.has_logo === false ? '' : `/v1/catalog/packages/${encodeURIComponent(one.id ?? '')}/logo`;

export const packageQuery = (id: string) =>
  queryOptions({
    queryKey: ['packages', 'one', id],
    queryFn: () => answered(api.GET('/burano/v1/packages/{package}', { params: { path: { package: id } } })),
  });

/** Packages of the same full name, the newest first. */
export const versionsQuery = (fullName: string) =>
  queryOptions({
    queryKey: ['packages', 'versions', fullName],
    queryFn: async () => {
      const { packages = [] } = await answered(api.GET('/burano/v1/packages', { params: { query: { fqn: fullName, limit: 100 } } }));
      return packages.filter((one) => one.fully_qualified_name === fullName).toSorted((a, b) => (b.updated ?? '').localeCompare(a.updated ?? ''));
    },
    enabled: fullName !== '',
  });

// Packages for maintainers of the catalog.
import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { answered, api, plain, send, type Schema } from '../api/client';
import type { Package } from '../catalog/catalog';
import { markerOf } from '../shell/paging';
import { sizes, type Look } from './look';

/** The server takes commas and semicolons between words; people type blanks. */
export const searchWords = (search: string): string => search.trim().split(/[\s,;]+/).filter(Boolean).join(',');

export function queryOf(look: Look) {
  const marker = markerOf(look.after);
  const search = searchWords(look.search ?? '');
  return {
    include_disabled: 'true',
    limit: look.limit ?? sizes[0],
    order_by: look.order ?? 'name',
    sort_dir: look.descending ? ('desc' as const) : ('asc' as const),
    ...(marker && { marker }),
    ...(search && { search }),
    ...(look.type && { type: look.type }),
    ...(look.owned && { owned: 'true' }),
  };
}

export const packagesKey = ['packages'];

export const packagesQuery = (look: Look) =>
  queryOptions({
    queryKey: [...packagesKey, 'managed', look],
    queryFn: ({ signal }) => answered(api.GET('/burano/v1/packages', { signal, params: { query: queryOf(look) } })),
    placeholderData: keepPreviousData,
  });

/**
 * Packages by their ids, or all of a full name that the caller sees: the own project's and public ones of others.
 */
export const comparedQuery = ({ ids, fqn }: { ids?: string; fqn?: string }) =>
  queryOptions({
    queryKey: [...packagesKey, 'compared', ids, fqn],
    queryFn: async () =>
      (
        await answered(
          api.GET('/burano/v1/packages', {
            params: { query: { include_disabled: 'true', ...(fqn && { fqn }), ...(ids && { id: `in:${ids}` }) } },
          }),
        )
      ).packages ?? [],
  });

type Changeable = Pick<Package, 'name' | 'description' | 'tags' | 'categories' | 'is_public' | 'enabled'>;

/** The changes from one state of a package to another, as the server takes them. */
export function patchOf(before: Changeable, after: Changeable): Schema<'JSONPatch'> {
  return (Object.keys(after) as (keyof Changeable)[])
    .filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
    .map((key) => ({ op: 'replace', path: `/${key}`, value: after[key] }));
}

export const changePackage = (before: Package, after: Changeable): Promise<Package> =>
  send(`/v1/catalog/packages/${encodeURIComponent(before.id ?? '')}`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/murano-packages-json-patch' },
    body: JSON.stringify(patchOf(before, after)),
  }).then((response) => response.json() as Promise<Package>);

export const deletePackage = (id: string): Promise<unknown> =>
  answered(api.DELETE('/v1/catalog/packages/{id}', { params: { path: { id } }, parseAs: 'text' }));

/** Deletes packages one after another; the remaining ones are named with the reason. */
export async function deletePackages(list: Package[]): Promise<void> {
  const refused: string[] = [];
  for (const item of list) {
    await deletePackage(item.id ?? '').catch((error: Error) => refused.push(`${item.name}: ${error.message}`));
  }
  if (refused.length > 0) throw new Error(refused.join('\n'));
}

export const downloadOf = (item: Package): string => `/v1/catalog/packages/${encodeURIComponent(item.id ?? '')}/download`;

/** The description of a package beside its file. */
export interface Metadata {
  categories: string[];
  tags: string[];
  is_public: boolean;
  enabled: boolean;
}

export async function uploadPackage(file: File, metadata: Metadata): Promise<Package> {
  const form = new FormData();
  // Omitted fields have the package's own values.
  const { categories, tags, ...rest } = metadata;
  form.append('__metadata__', JSON.stringify({ ...rest, ...(categories.length > 0 && { categories }), ...(tags.length > 0 && { tags }) }));
  form.append('file', file, file.name);
  return (await send('/v1/catalog/packages', { method: 'POST', body: form })).json() as Promise<Package>;
}

/** The server's findings about a package, one a line. */
export const findings = (message: string): string[] =>
  plain(message)
    .replace(/^Couldn't load package from file: /, '')
    .split(/\n+/)
    .map((line) => line.trim())
    .filter(Boolean);

/** Reads a list that people have typed with commas. */
export const listOf = (text: string): string[] => [...new Set(text.split(',').map((word) => word.trim()).filter(Boolean))];

const compared = ['name', 'fully_qualified_name', 'version', 'type', 'description', 'author', 'owner_id', 'is_public', 'enabled', 'tags', 'categories', 'created', 'updated'] as const;

export interface Comparison {
  attributes: { name: (typeof compared)[number]; values: Package[(typeof compared)[number]][]; differs: boolean }[];
  /** Each class of any of them, and which of them have it. */
  classes: { name: string; has: boolean[]; differs: boolean }[];
}

const differ = (values: unknown[]): boolean => values.some((value) => JSON.stringify(value) !== JSON.stringify(values[0]));

/** Puts packages side by side. */
export function compare(list: Package[]): Comparison {
  const names = [...new Set(list.flatMap((item) => item.class_definitions ?? []))].sort();
  return {
    attributes: compared.map((name) => {
      const values = list.map((item) => item[name]);
      return { name, values, differs: differ(values) };
    }),
    classes: names.map((name) => {
      const has = list.map((item) => item.class_definitions?.includes(name) ?? false);
      return { name, has, differs: differ(has) };
    }),
  };
}

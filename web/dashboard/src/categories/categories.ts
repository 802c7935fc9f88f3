import { answered, api, type Schema } from '../api/client';

/** Categories with packages come first, then by name. */
export const inOrder = (list: Schema<'Category'>[], language: string): Schema<'Category'>[] =>
  list.toSorted(
    (a, b) => Number((b.package_count ?? 0) > 0) - Number((a.package_count ?? 0) > 0) || (a.name ?? '').localeCompare(b.name ?? '', language),
  );

export const addCategory = (name: string): Promise<unknown> => answered(api.POST('/v1/catalog/categories', { body: { name } }));

export const deleteCategory = (id: string): Promise<unknown> =>
  answered(api.DELETE('/v1/catalog/categories/{id}', { params: { path: { id } }, parseAs: 'text' }));

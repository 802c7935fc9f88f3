// Templates: environments to be.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import type { ObjectModel } from '../environments/environments';
import type { Whose } from './whose';

export type Template = Schema<'Template'>;

export const templatesKey = ['templates'];

export const templatesQuery = (which?: Whose) =>
  queryOptions({
    queryKey: [...templatesKey, 'list', which],
    queryFn: async () =>
      (await answered(api.GET('/v1/templates', { params: { query: which ? { is_public: String(which === 'public') } : {} } }))).templates ?? [],
  });

export const templateQuery = (template: string) =>
  queryOptions({
    queryKey: [...templatesKey, template],
    queryFn: () => answered(api.GET('/v1/templates/{template}', { params: { path: { template } } })),
  });

export interface NewTemplate {
  name: string;
  is_public: boolean;
  description_text: string;
  /** The environment whose applications it begins with; '' for none. */
  environment: string;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Copies applications with new ids, as objects of two environments may not have the same; references among them
 * follow. Data of the deployment, which `?` has beside its id, class and name, are left out.
 */
export function copied(services: ObjectModel[], newId: () => string = () => crypto.randomUUID().replaceAll('-', '')): ObjectModel[] {
  const ids = new Map<string, string>();
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect);
    if (!isObject(value)) return;
    if (isObject(value['?']) && typeof value['?'].id === 'string') ids.set(value['?'].id, newId());
    Object.values(value).forEach(collect);
  };
  const copy = (value: unknown): unknown => {
    if (typeof value === 'string') return ids.get(value) ?? value;
    if (Array.isArray(value)) return value.map(copy);
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        if (key !== '?' || !isObject(inner)) return [key, copy(inner)];
        const kept = Object.entries(inner).filter(([name]) => ['id', 'type', 'classVersion', 'package', 'name', 'metadata'].includes(name));
        return [key, copy(Object.fromEntries(kept))];
      }),
    );
  };
  collect(services);
  return copy(services) as ObjectModel[];
}

export async function createTemplate({ environment, ...rest }: NewTemplate): Promise<Template> {
  const services = environment ? await answered(api.GET('/v1/environments/{environment}/services', { params: { path: { environment } } })) : [];
  return answered(api.POST('/v1/templates', { body: { ...rest, services: copied(services as ObjectModel[]) } }));
}

export const renameTemplate = (template: string, name: string): Promise<Template> =>
  answered(api.PUT('/v1/templates/{template}', { params: { path: { template } }, body: { name } }));

export const cloneTemplate = (template: string, name: string): Promise<Template> =>
  answered(api.POST('/v1/templates/{template}/clone', { params: { path: { template } }, body: { name } }));

export const deleteTemplate = (template: string): Promise<unknown> =>
  answered(api.DELETE('/v1/templates/{template}', { params: { path: { template } }, parseAs: 'text' }));

/** Makes an environment from a template; its applications are in a draft. */
export const createFromTemplate = (template: string, name: string): Promise<{ environment_id?: string; session_id?: string }> =>
  answered(api.POST('/v1/templates/{template}/create-environment', { params: { path: { template } }, body: { name } }));

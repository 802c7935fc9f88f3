// The forms of a package: its own ones, evaluated by the server, else forms from its class.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, ApiError } from '../api/client';
import { packageQuery } from '../catalog/catalog';
import type { ObjectModel } from '../environments/environments';
import { queries } from '../api/queries';
import { check, formOf, modelOf, type ClassSchema, type Messages } from './schema';
import type { Form, FormError, Values } from './values';

export interface Definition {
  package: string;
  /** The source of the forms: the package itself, the schema of its class, or none. */
  source: 'forms' | 'schema' | 'json';
  /** '' where the forms are the package's. */
  className: string;
  named: boolean;
  forms: Form[];
}

export interface Evaluation {
  forms: Form[];
  errors: FormError[];
  model: ObjectModel | null;
}

const isMissing = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

export const definitionQuery = (id: string) =>
  queryOptions({
    queryKey: ['forms', id],
    queryFn: async (): Promise<Definition> => {
      const { fully_qualified_name: className = '', has_ui: hasForms } = await queries.fetchQuery(packageQuery(id));
      if (hasForms !== false) {
        const { named = false, forms = [] } = await answered(api.GET('/burano/v1/forms/{package}', { params: { path: { package: id } } }));
        return { package: id, source: 'forms', className: '', named, forms: forms as Form[] };
      }
      const schema = await readSchema(className);
      return { package: id, source: schema?.properties ? 'schema' : 'json', className, named: false, forms: [formOf(schema)] };
    },
    staleTime: 60_000,
  });

async function readSchema(className: string): Promise<ClassSchema | null> {
  try {
    const schemas = await answered(api.GET('/v1/schemas/{class}', { params: { path: { class: className }, query: { packageName: className } } }));
    return ((schemas as Record<string, unknown>)[''] ?? null) as ClassSchema | null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** An id for an object, also where the page came over plain HTTP and the browser has no randomUUID. */
const freshId = (): string => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Evaluates the forms: their present look, their errors, and the model without errors. */
export async function evaluate(definition: Definition, name: string, values: Values, messages: Messages, signal?: AbortSignal): Promise<Evaluation> {
  if (definition.source !== 'forms') {
    const errors = definition.forms.flatMap((form) => check(form, values, messages));
    const [form] = definition.forms;
    return { forms: definition.forms, errors, model: form && errors.length === 0 ? modelOf(form, values, definition.className, freshId()) : null };
  }
  const answer = await answered(
    api.POST('/burano/v1/forms/{package}', {
      params: { path: { package: definition.package } },
      body: { ...(definition.named && { name }), values: values as Record<string, Record<string, never>> },
      signal,
    }),
  );
  return { forms: (answer.forms ?? []) as Form[], errors: (answer.errors ?? []) as FormError[], model: (answer.model ?? null) as ObjectModel | null };
}

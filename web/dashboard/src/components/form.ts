// The form that a component was made with, with the values of today.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, ApiError, type Schema } from '../api/client';
import type { Draft } from '../draft/draft';
import { isEmpty, valueOf, type Field, type Form, type Values } from '../wizard/values';

export interface Today {
  package: string;
  name: string;
  named: boolean;
  forms: Form[];
  values: Values;
  /** Secrets that are set: they are not shown. */
  kept: Schema<'FormQuestion'>[];
  /** Fields whose values cannot be read from the component. */
  unknown: Schema<'FormQuestion'>[];
  /** Properties that follow from the values. */
  covered: string[];
}

/** The result of other values. */
export interface Effect {
  forms: Form[];
  errors: { form: string; field: string; message: string }[];
  changed: string[];
  conflicts: { path: string; present?: unknown; wanted?: unknown }[];
}

const at = (environment: string, component: string, session: string | undefined) => ({
  path: { environment, component },
  header: session ? { 'X-Configuration-Session': session } : {},
});

/** The form of an application of an environment, or of its draft; null where no package has one that fits. */
export const todayQuery = (environment: string, component: string, draft: Draft | null) => {
  const session = draft?.state === 'opened' ? draft.session : undefined;
  return queryOptions({
    queryKey: ['environments', environment, session ?? 'deployed', 'form of', component],
    queryFn: async (): Promise<Today | null> => {
      try {
        return (await answered(api.GET('/burano/v1/environments/{environment}/components/{component}/form', { params: at(environment, component, session) }))) as Today;
      } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return null;
        throw error;
      }
    },
  });
};

export interface Filled {
  name: string;
  values: Values;
}

const bodyOf = ({ name, values }: Filled) => ({ ...(name && { name }), values: values as Record<string, Record<string, never>> });

/** The effect of other values; nothing is changed. */
export const effectOf = async (environment: string, component: string, draft: Draft | null, filled: Filled, signal?: AbortSignal): Promise<Effect> =>
  (await answered(
    api.POST('/burano/v1/environments/{environment}/components/{component}/form', {
      params: at(environment, component, draft?.state === 'opened' ? draft.session : undefined),
      body: bodyOf(filled),
      signal,
    }),
  )) as Effect;

/** Changes a component of a draft by its form. */
export const putForm = async (environment: string, component: string, session: string, filled: Filled): Promise<Effect> =>
  (await answered(
    api.PUT('/burano/v1/environments/{environment}/components/{component}/form', { params: at(environment, component, session), body: bodyOf(filled) }),
  )) as Effect;

const holds = (list: Schema<'FormQuestion'>[], form: string, field: string) => list.some((one) => one.form === form && one.field === field);

/** The forms as fields of an edit: a secret that is set, or a value that is not known, may be left empty, and a value in use may stay. */
export function editable(forms: Form[], today: Today, unchanged: string): Form[] {
  return forms.map((form) => ({
    ...form,
    fields: form.fields.map((field): Field => {
      const kept = holds(today.kept, form.name, field.name);
      const unknown = holds(today.unknown, form.name, field.name);
      const inUse = valueOf(today.values, form.name, field);
      return { ...field, inUse, ...((kept || unknown) && { required: false }), ...(kept && { placeholder: unchanged, initial: '' }) };
    }),
  }));
}

/** The values that differ from those of today. */
export function changedValues(today: Today, values: Values): Values {
  const changed: Values = {};
  for (const [form, fields] of Object.entries(values)) {
    for (const [field, value] of Object.entries(fields)) {
      const was = today.values[form]?.[field];
      if (value === undefined || (isEmpty(value) && isEmpty(was)) || JSON.stringify(value) === JSON.stringify(was)) continue;
      changed[form] = { ...changed[form], [field]: value };
    }
  }
  return changed;
}

/** The labels of fields. */
export const labelsOf = (forms: Form[], list: Schema<'FormQuestion'>[]): string[] =>
  list.map(({ form, field }) => forms.find((one) => one.name === form)?.fields.find((one) => one.name === field)?.label || field);

/** A value in a sentence. */
export const inWords = (value: unknown, nothing: string): string =>
  isEmpty(value) ? nothing : typeof value === 'object' ? JSON.stringify(value) : String(value);

// Values of forms and their fields. A value that is not set is the field's initial one, which may depend on others:
// only set values are stored and sent.
import type { Schema } from '../api/client';

/** json is the one type that the server does not know: for properties of classes that have no simpler type. */
export type Field = Omit<Schema<'FormField'>, 'name' | 'options' | 'initial'> & {
  name: string;
  initial?: unknown;
  options?: Record<string, unknown>;
  /** The text of an empty field. */
  placeholder?: string;
  /** The value that is in use: it may be kept although it is offered no more. */
  inUse?: unknown;
};

export interface Form {
  name: string;
  region?: unknown;
  fields: Field[];
}

/** Values by form and field. */
export type Values = Record<string, Record<string, unknown>>;

export interface FormError {
  /** '' where it is about the application as a whole. */
  form: string;
  /** '' where it is about the form as a whole. */
  field: string;
  message: string;
}

export const visible = (form: Form): Field[] => form.fields.filter((field) => !field.hidden);

/** The main questions of a form, and its other fields by the headings that the form has for them. */
export function byTopic(form: Form): { main: Field[]; topics: [string, Field[]][] } {
  const topics = new Map<string, Field[]>();
  for (const field of visible(form)) if (field.topic) topics.set(field.topic, [...(topics.get(field.topic) ?? []), field]);
  return { main: visible(form).filter((field) => !field.topic), topics: [...topics] };
}

/** Whether the user has given a field another value than the one that is suggested. */
export function differs(values: Values, form: string, field: Field): boolean {
  const value = valueOf(values, form, field);
  return value !== field.initial && !(isEmpty(value) && isEmpty(field.initial)) && JSON.stringify(value) !== JSON.stringify(field.initial);
}

export const isSet = (values: Values, form: string, field: string): boolean => values[form]?.[field] !== undefined;

export const valueOf = (values: Values, form: string, field: Field): unknown => {
  const own = values[form]?.[field.name];
  return own === undefined ? field.initial : own;
};

/** The values with one that is other; undefined takes it back to its initial one. */
export function withValue(values: Values, form: string, field: string, value: unknown): Values {
  return { ...values, [form]: { ...values[form], [field]: value } };
}

/** The values that may be stored in the browser: no secrets. */
export function keepable(forms: Form[], values: Values): Values {
  const kept: Values = {};
  for (const [name, fields] of Object.entries(values)) {
    const form = forms.find((one) => one.name === name);
    // A field of unknown type may be a secret.
    if (!form) continue;
    kept[name] = Object.fromEntries(
      Object.entries(fields).filter(([key]) => form.fields.some((field) => field.name === key && !field.secret && field.type !== 'password')),
    );
  }
  return kept;
}

export const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** Errors of the repetition of secrets that must be typed twice. */
export function unconfirmed(forms: Form[], values: Values, repeated: Values, message: string): FormError[] {
  return forms.flatMap((form) =>
    visible(form)
      .filter((field) => field.confirm && isSet(values, form.name, field.name))
      .filter((field) => (valueOf(values, form.name, field) ?? '') !== (repeated[form.name]?.[field.name] ?? ''))
      .map((field) => ({ form: form.name, field: field.name, message })),
  );
}

/** The errors of one field. */
export const errorsOf = (errors: FormError[], form: string, field: string): string[] =>
  errors.filter((error) => error.form === form && error.field === field).map((error) => error.message);

/** One step of the wizard: a form with something to fill in, or the name of the application alone. */
export interface Step {
  id: string;
  title: string;
  form: Form | null;
  /** Whether the application's name is asked for here. */
  named: boolean;
}

/** Makes of appConfiguration "App configuration". */
export function titleOf(name: string): string {
  const words = name
    .replace(/[_-]+/g, ' ')
    .replace(/([a-z\d])([A-Z])/g, (_all, before: string, after: string) => `${before} ${after.toLowerCase()}`)
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function stepsOf(forms: Form[], named: boolean, nameTitle: string): Step[] {
  const steps = forms
    .filter((form) => visible(form).length > 0)
    .map((form, i): Step => ({ id: form.name, title: titleOf(form.name), form, named: named && i === 0 }));
  if (named && steps.length === 0) return [{ id: '', title: nameTitle, form: null, named: true }];
  return steps;
}

/** The errors that prevent leaving a step. Errors of hidden forms and fields are shown in the review. */
export function errorsIn(step: Step, errors: FormError[]): FormError[] {
  return errors.filter(
    (error) => (step.named && error.form === '' && error.field === 'name') || (step.form !== null && error.form === step.form.name && error.form !== ''),
  );
}

/** The value of a required choice with only one possibility; undefined if the user has to choose. */
export function onlyChoice<T>(field: Field, choices: T[]): T | undefined {
  return field.required && choices.length === 1 ? choices[0] : undefined;
}

/** The typed number, else the text itself, whose error the server reports. */
export const numberOf = (text: string): number | string | null => {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  return /^[+-]?\d{1,15}$/.test(trimmed) ? Number(trimmed) : text;
};

/** A value as text for an input. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

// A form for a class whose package describes none, made of the class's schema.
import type { ObjectModel } from '../environments/environments';
import type { Field, Form, FormError, Values } from './values';
import { isEmpty, valueOf } from './values';

interface Property {
  type?: string | string[];
  muranoType?: string;
  owned?: boolean;
  default?: unknown;
  enum?: unknown[];
  title?: string | null;
  description?: string | null;
  help?: string | null;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  visible?: boolean;
  formIndex?: number | null;
}

export interface ClassSchema {
  properties?: Record<string, Property>;
  required?: string[];
}

/** The one form of such a class. */
export const formName = 'properties';

function typeOf(property: Property): { type: string; nullable: boolean } {
  const types = Array.isArray(property.type) ? property.type : [property.type ?? ''];
  const nullable = types.includes('null');
  const [type = '', ...more] = types.filter((one) => one !== 'null');
  if (more.length > 0) return { type: 'json', nullable };
  if (property.enum && property.enum.every((value) => value === null || typeof value === 'string')) return { type: 'choice', nullable };
  switch (type) {
    case 'string':
    case 'boolean':
    case 'integer':
      return { type, nullable };
    case 'muranoObject':
      return { type: property.owned ? 'json' : 'object', nullable };
    default:
      return { type: 'json', nullable };
  }
}

function fieldOf(name: string, property: Property, required: boolean): Field {
  const { type, nullable } = typeOf(property);
  return {
    name,
    type,
    label: property.title || name,
    description: property.description ?? property.help ?? '',
    required: type !== 'boolean' && !nullable && (required || property.default === undefined || type === 'choice'),
    hidden: property.visible === false,
    initial: property.default,
    ...(type === 'object' && { classes: [property.muranoType ?? ''] }),
    ...(type === 'choice' && { choices: (property.enum ?? []).filter((value) => value !== null).map((value) => ({ value: String(value), label: String(value) })) }),
    ...(property.minimum !== undefined && { min_value: property.minimum }),
    ...(property.maximum !== undefined && { max_value: property.maximum }),
    ...(property.minLength !== undefined && { min_length: property.minLength }),
    ...(property.maxLength !== undefined && { max_length: property.maxLength }),
    options: { wanted: type === 'json' ? (Array.isArray(property.type) ? property.type.join(' | ') : (property.muranoType ?? property.type ?? 'any')) : undefined },
  };
}

/**
 * The form of a class, in the order of its indexes, else with required fields first. A class without schema has a
 * single field for everything.
 */
export function formOf(schema: ClassSchema | null): Form {
  if (!schema?.properties) {
    return { name: formName, fields: [{ name: '', type: 'json', label: '', required: false, hidden: false, initial: {}, options: { wanted: 'object' } }] };
  }
  const index = (name: string) => schema.properties?.[name]?.formIndex ?? Number.MAX_SAFE_INTEGER;
  const fields = Object.entries(schema.properties).map(([name, property]) => fieldOf(name, property, schema.required?.includes(name) ?? false));
  const rank = (field: Field) => (field.required ? 0 : 1);
  fields.sort((a, b) => index(a.name) - index(b.name) || rank(a) - rank(b) || a.name.localeCompare(b.name));
  return { name: formName, fields };
}

export interface Messages {
  required: string;
  wholeNumber: string;
  badJSON: string;
}

/**
 * Parses JSON input: the parsed value, or undefined for invalid input. Values that were not typed stay as they are.
 */
export function parsed(value: unknown): { value: unknown } | undefined {
  if (typeof value !== 'string') return { value };
  if (value.trim() === '') return { value: null };
  try {
    return { value: JSON.parse(value) as unknown };
  } catch {
    return undefined;
  }
}

/** Checks the schema's simple rules; the server checks the rest in the draft. */
export function check(form: Form, values: Values, messages: Messages): FormError[] {
  const wrong = (field: Field, message: string): FormError[] => [{ form: form.name, field: field.name, message }];
  return form.fields.flatMap((field) => {
    const value = valueOf(values, form.name, field);
    if (isEmpty(value)) return field.required && value !== '' ? wrong(field, messages.required) : [];
    if (field.type === 'integer' && !Number.isInteger(value)) return wrong(field, messages.wholeNumber);
    if (field.type === 'json') {
      const read = parsed(value);
      const whole = field.name === '' && (typeof read?.value !== 'object' || Array.isArray(read.value));
      return read && !whole ? [] : wrong(field, messages.badJSON);
    }
    return [];
  });
}

/** The object of the values. The class sets properties without a value. */
export function modelOf(form: Form, values: Values, className: string, id: string): ObjectModel {
  const properties: Record<string, unknown> = {};
  for (const field of form.fields) {
    const set = values[form.name]?.[field.name];
    if (set === undefined) continue;
    const value = field.type === 'json' ? parsed(set)?.value : set;
    if (field.name === '') Object.assign(properties, value);
    else properties[field.name] = value;
  }
  return { ...properties, '?': { id, type: className } };
}

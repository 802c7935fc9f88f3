// The properties of an object as a form, and the changes.
import { queryOptions } from '@tanstack/react-query';

import { partsOf } from '../actions/actions';
import { fieldsOf, textOf, valueOf, type Field, type Mistake } from '../actions/schema';
import { answered, api } from '../api/client';
import type { ObjectModel } from '../environments/environments';
import { isSecret } from './components';
import { masked } from './masked';

/** The schema of a class's properties; null where the class is not in the catalog any more. */
export const propertiesQuery = (type: string) =>
  queryOptions({
    queryKey: ['classes', type, 'properties'],
    queryFn: async () => {
      const { name, version, packageName } = partsOf(type);
      const query = { effects: true, ...(packageName && { packageName }), ...(version && { classVersion: version }) };
      const schemas = await answered(api.GET('/v1/schemas/{class}', { params: { path: { class: name }, query } }));
      return ((schemas as Record<string, unknown>)[''] ?? null) as object | null;
    },
    staleTime: Infinity,
  });

/**
 * The path of an object below the applications, as the API names it: lists by the ids of their items. Null for a
 * missing object.
 */
export function pathOf(within: unknown, id: string): string[] | null {
  if (typeof within !== 'object' || within === null) return null;
  for (const [key, inner] of Object.entries(within)) {
    if (key === '?' || typeof inner !== 'object' || inner === null) continue;
    const header = (inner as ObjectModel)['?'];
    const step = (Array.isArray(within) && header?.id) || key;
    if (header?.id === id) return [step];
    const below = pathOf(inner, id);
    if (below) return [step, ...below];
  }
  return null;
}

/**
 * The fields of an object: the fields of its class's schema, else one for each of its properties, filled with its
 * values.
 */
export function editableFields(schema: object | null, object: ObjectModel, words: { hidden: string; unchanged: string }): Field[] {
  const now = object as unknown as Record<string, unknown>;
  const fields = schema ? fieldsOf(schema) : fieldsOf({ properties: guessed(now) });
  return fields.map((field) => (field.name in now ? filled(field, now[field.name], words) : field));
}

/** The fields of an object with the effects that the class of its owner declares for parts of the property that contains it. */
export function withPartsOf(owner: object | null, property: string, fields: Field[]): Field[] {
  const parts = owner && fieldsOf(owner).find((field) => field.name === property)?.effect?.parts;
  return parts ? fields.map((field) => ({ ...field, effect: parts[field.name] ?? field.effect })) : fields;
}

/** The presumed schema of values. */
function guessed(values: Record<string, unknown>): Record<string, object> {
  const typeOf = (value: unknown) => (typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'boolean' : typeof value === 'string' ? 'string' : 'any');
  return Object.fromEntries(Object.entries(values).filter(([name]) => name !== '?').map(([name, value]) => [name, { type: [typeOf(value), 'null'] }]));
}

function filled(field: Field, value: unknown, { hidden, unchanged }: { hidden: string; unchanged: string }): Field {
  const kind = fittingKind(field, value);
  if (kind === 'secret') return { ...field, kind, initial: '', ...(value !== null && value !== '' && { required: false, placeholder: unchanged }) };
  if (kind === 'json') return { ...field, kind, initial: value === null ? '' : JSON.stringify(masked(value, hidden, field.name), null, 2) };
  return { ...field, kind, initial: textOf(value, kind) };
}

/** The kind of field that can show a value: JSON, if the schema's kind cannot. */
function fittingKind({ kind, name, choices }: Field, value: unknown): Field['kind'] {
  if (value === null) return kind;
  const isText = typeof value === 'string';
  switch (kind) {
    case 'text':
      if (isText) return value.includes('\n') ? 'lines' : kind;
      return 'json';
    case 'secret':
    case 'object':
      return isText ? kind : 'json';
    case 'choice':
      return choices.some((choice) => choice.value === value) ? kind : isText ? 'text' : 'json';
    case 'boolean':
    case 'number':
      return typeof value === kind ? kind : 'json';
    case 'list':
    case 'objects': {
      const plain = Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '' && item.trim() === item && !item.includes('\n'));
      return plain && !isSecret(name) ? kind : 'json';
    }
    default:
      return kind;
  }
}

export interface Edited {
  changes: Record<string, unknown>;
  mistakes: Record<string, Mistake>;
}

/** The changed properties, with their new values. Untouched ones are not among them. */
export function changesOf(fields: Field[], typed: Record<string, string>, object: ObjectModel, hidden: string): Edited {
  const edited: Edited = { changes: {}, mistakes: {} };
  const now = object as unknown as Record<string, unknown>;
  for (const field of fields) {
    const text = typed[field.name];
    if (text === undefined || text === field.initial) continue;
    const read = field.kind !== 'boolean' && text.trim() === '' ? emptied(field) : valueOf(field, text);
    if ('mistake' in read) edited.mistakes[field.name] = read.mistake;
    else if (field.kind !== 'json') edited.changes[field.name] = read.value;
    else {
      const value = unmasked(read.value, now[field.name], hidden);
      if (value === undefined) edited.mistakes[field.name] = 'secret';
      else edited.changes[field.name] = value;
    }
  }
  return edited;
}

function emptied(field: Field): { value: unknown } | { mistake: Mistake } {
  if (field.required) return { mistake: 'required' };
  if (field.kind === 'list' || field.kind === 'objects') return { value: [] };
  if (field.nullable) return { value: null };
  return field.kind === 'text' || field.kind === 'lines' || field.kind === 'secret' ? { value: '' } : { mistake: 'required' };
}

/**
 * A value with the secrets of its marks: the secrets at the same place of the former value. Undefined if a mark has
 * none.
 */
export function unmasked(value: unknown, was: unknown, mark: string): unknown {
  if (value === mark) return typeof was === 'string' ? was : undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const before: unknown[] = Array.isArray(was) ? was : [];
    const items = value.map((item, i) => {
      const id = (item as ObjectModel | null)?.['?']?.id;
      return unmasked(item, id ? before.find((one) => (one as ObjectModel | null)?.['?']?.id === id) : before[i], mark);
    });
    return items.includes(undefined) ? undefined : items;
  }
  const before = (typeof was === 'object' && was !== null ? was : {}) as Record<string, unknown>;
  const entries = Object.entries(value).map(([key, item]) => [key, unmasked(item, before[key], mark)] as const);
  return entries.some(([, item]) => item === undefined) ? undefined : Object.fromEntries(entries);
}

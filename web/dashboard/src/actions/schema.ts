// The arguments of a method as fields of a form, from the JSON schema of its class.
import { isSecret } from '../components/components';
import type { Texts } from '../text/en';

export interface Field {
  name: string;
  title: string;
  help: string;
  kind: 'text' | 'lines' | 'secret' | 'number' | 'boolean' | 'choice' | 'list' | 'object' | 'objects' | 'json';
  required: boolean;
  /** Whether it may be null. */
  nullable: boolean;
  /** The text of an empty field. */
  placeholder?: string;
  /** The values of a choice, each with its text in the form. */
  choices: { text: string; value: unknown }[];
  /** The class of the objects that may be chosen. */
  objectClass: string;
  /** The initial text of the field; of booleans 'true' or 'false'. */
  initial: string;
  pattern: string;
  minimum: number | null;
  maximum: number | null;
  whole: boolean;
  /** The effect of another value on a deployed object. */
  effect: OnChange | null;
}

type Effect = keyof Texts['draft']['effects'];

/** A declared effect, and those of the properties of the object that the property contains. */
export interface OnChange {
  effect: Effect;
  text?: string | null;
  parts?: Record<string, OnChange>;
}

interface Property {
  type?: string | string[];
  title?: string;
  description?: string;
  helpText?: string;
  default?: unknown;
  enum?: unknown[];
  items?: Property;
  /** The class of an object (the type muranoObject). */
  muranoType?: string;
  pattern?: string;
  minimum?: number;
  exclusiveMinimum?: boolean;
  maximum?: number;
  exclusiveMaximum?: boolean;
  formIndex?: number;
  visible?: boolean;
  onChange?: OnChange;
}

/** The fields of a schema, in the order that it asks for. */
export function fieldsOf(schema: object): Field[] {
  const { properties = {}, required = [] } = schema as { properties?: Record<string, Property>; required?: string[] };
  return Object.entries(properties)
    .filter(([, property]) => property.visible !== false)
    .sort(([, a], [, b]) => (a.formIndex ?? Infinity) - (b.formIndex ?? Infinity) || 0)
    .map(([name, property]) => fieldOf(name, property, required.includes(name)));
}

function fieldOf(name: string, property: Property, required: boolean): Field {
  const types = [property.type ?? 'any'].flat();
  const type = types.find((each) => each !== 'null') ?? 'any';
  const whole = type === 'integer';
  const minimum = property.minimum === undefined ? null : property.minimum + (property.exclusiveMinimum && whole ? 1 : 0);
  const maximum = property.maximum === undefined ? null : property.maximum - (property.exclusiveMaximum && whole ? 1 : 0);
  const maybe = type === 'boolean' && types.includes('null');
  const kind = maybe ? 'choice' : kindOf(name, type, property);
  return {
    name,
    title: property.title || name,
    help: property.helpText || property.description || '',
    kind,
    required: required && kind !== 'boolean',
    nullable: types.includes('null') || types.includes('any'),
    choices: (maybe ? [true, false] : (property.enum ?? [])).filter((value) => value !== null).map((value) => ({ text: String(value), value })),
    objectClass: property.muranoType ?? property.items?.muranoType ?? '',
    initial: textOf(property.default, kind),
    pattern: property.pattern ?? '',
    minimum,
    maximum,
    whole,
    effect: property.onChange ?? null,
  };
}

function kindOf(name: string, type: string, property: Property): Field['kind'] {
  if (property.enum) return 'choice';
  if (type === 'boolean') return 'boolean';
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'string') return isSecret(name) ? 'secret' : 'text';
  if (type === 'muranoObject') return 'object';
  const items = type === 'array' ? [property.items?.type ?? ''].flat() : [];
  if (items.includes('string')) return 'list';
  if (items.includes('muranoObject')) return 'objects';
  return 'json';
}

/** A value as its text in the form. */
export function textOf(value: unknown, kind: Field['kind']): string {
  if (kind === 'boolean') return String(value === true);
  if (value === null || value === undefined) return '';
  if ((kind === 'list' || kind === 'objects') && Array.isArray(value)) return value.join('\n');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The error of an input. */
export type Mistake = 'required' | 'number' | 'whole' | 'minimum' | 'maximum' | 'pattern' | 'json' | 'secret';

export interface Filled {
  args: Record<string, unknown>;
  mistakes: Record<string, Mistake>;
}

/** The input as arguments. Empty optional ones are left out: then their defaults apply. */
export function argumentsOf(fields: Field[], typed: Record<string, string>): Filled {
  const filled: Filled = { args: {}, mistakes: {} };
  for (const field of fields) {
    const text = typed[field.name] ?? field.initial;
    if (text.trim() === '') {
      if (field.required) filled.mistakes[field.name] = 'required';
      continue;
    }
    const read = valueOf(field, text);
    if ('mistake' in read) filled.mistakes[field.name] = read.mistake;
    else filled.args[field.name] = read.value;
  }
  return filled;
}

/** Reads the input of a field. */
export function valueOf(field: Field, text: string): { value: unknown } | { mistake: Mistake } {
  switch (field.kind) {
    case 'boolean':
      return { value: text === 'true' };
    case 'number': {
      const value = Number(text);
      if (!Number.isFinite(value)) return { mistake: 'number' };
      if (field.whole && !Number.isInteger(value)) return { mistake: 'whole' };
      if (field.minimum !== null && value < field.minimum) return { mistake: 'minimum' };
      if (field.maximum !== null && value > field.maximum) return { mistake: 'maximum' };
      return { value };
    }
    case 'choice':
      return { value: field.choices.find((choice) => choice.text === text)?.value ?? text };
    case 'list':
    case 'objects':
      return { value: text.split('\n').map((line) => line.trim()).filter(Boolean) };
    case 'json':
      try {
        return { value: JSON.parse(text) as unknown };
      } catch {
        return { mistake: 'json' };
      }
    default:
      return fits(field.pattern, text) ? { value: text } : { mistake: 'pattern' };
  }
}

/** Whether a text fits a pattern; one that the browser cannot read is left to the server. */
function fits(pattern: string, text: string): boolean {
  if (!pattern) return true;
  try {
    return new RegExp(pattern).test(text);
  } catch {
    return true;
  }
}

/** A pair of texts as an argument of a method without a schema. */
export interface Pair {
  name: string;
  value: string;
}

/** Pairs as arguments: values are read as JSON where they are any, else as texts. */
export function argumentsOfPairs(pairs: Pair[]): Record<string, unknown> {
  const args: Record<string, unknown> = {};
  for (const { name, value } of pairs) {
    if (name.trim() === '') continue;
    try {
      args[name.trim()] = JSON.parse(value) as unknown;
    } catch {
      args[name.trim()] = value;
    }
  }
  return args;
}

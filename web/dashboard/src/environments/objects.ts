// Objects inside of a model.
import { nameOf, type ObjectModel } from './environments';

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Calls visit for every object with a header in the value, enclosing ones first. */
export function walk(value: unknown, visit: (object: ObjectModel, owner: ObjectModel | null) => void, owner: ObjectModel | null = null): void {
  if (Array.isArray(value)) {
    for (const element of value) walk(element, visit, owner);
    return;
  }
  if (!isObject(value)) return;
  const header = value['?'];
  const object = isObject(header) && typeof header.id === 'string' ? (value as ObjectModel) : null;
  if (object) visit(object, owner);
  for (const [key, inner] of Object.entries(value)) {
    if (key !== '?') walk(inner, visit, object ?? owner);
  }
}

/** The names of a model's objects, by their ids. */
export function namesOf(model: unknown): Map<string, string> {
  const names = new Map<string, string>();
  walk(model, (object) => names.set(object['?']?.id ?? '', nameOf(object)));
  return names;
}

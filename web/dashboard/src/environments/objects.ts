// Objects inside of a model.
import { classOf, nameOf, type ObjectModel } from './environments';

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

/**
 * A path of a model, such as services[0].instance.flavor, by the names of its objects: "web, instance: flavor". A path that does not
 * lead through the model stays as it is.
 */
export function inNames(path: string, model: unknown): string {
  const steps = [...path.matchAll(/[^.[\]]+/g)].map(([step]) => step);
  const names: string[] = [];
  let rest: string[] = [];
  let value = model;
  for (const [i, step] of steps.entries()) {
    value = Array.isArray(value) ? value[Number(step)] : isObject(value) ? value[step] : undefined;
    if (isObject(value) && isObject(value['?'])) {
      const name = nameOf(value as ObjectModel);
      const isNamed = name !== classOf(value as ObjectModel).split('.').pop();
      names.push(isNamed ? name : /^\d+$/.test(step) ? `${name} ${Number(step) + 1}` : step);
      rest = [];
    } else {
      rest.push(/^\d+$/.test(step) ? `[${step}]` : i > 0 && rest.length > 0 ? `.${step}` : step);
    }
  }
  if (names.length === 0) return path;
  return names.join(', ') + (rest.length > 0 ? `: ${rest.join('')}` : '');
}

import { isSecret } from './components';

/** A copy of a value in which mark replaces every text under a secret's name. */
export function masked(value: unknown, mark: string, name = ''): unknown {
  if (typeof value === 'string') return value && isSecret(name) ? mark : value;
  if (Array.isArray(value)) return value.map((item) => masked(item, mark, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item, mark, key)]));
}

// The differences between two values of a property, as single values with their paths: so that users need not read
// JSON.
import { isSecret } from '../components/components';

export type Scalar = string | number | boolean;

/** A value without parts, or a list of such. */
export type Leaf = Scalar | null | Scalar[];

export interface Difference {
  /** The path, such as ports[0].protocol. */
  path: string;
  before: Leaf;
  after: Leaf;
  /** Its values are hidden. */
  secret: boolean;
}

type Names = Map<string, string>;

/**
 * The differences of the second value. Objects of the environment are their names in both: they are compared by
 * themselves.
 */
export const differencesOf = (path: string, before: unknown, after: unknown, names: Names = new Map()): Difference[] =>
  between(path, reduced(before, names), reduced(after, names), isSecret(path));

/** The server's replacement of a secret. */
const mark = '*** SANITIZED ***';

/**
 * The differences in a field of an object of Kubernetes. A secret is masked in both values, so the mark is the value.
 */
export function fieldsOf({ path, before, after }: { path: string; before?: unknown; after?: unknown }): Difference[] {
  const found = differencesOf(path, before, after).map((one) => ({ ...one, secret: one.secret || one.before === mark || one.after === mark }));
  return found.length > 0 ? found : [{ path, before: null, after: null, secret: true }];
}

/** The value with objects and their ids as names, and nothing for empty ones. */
function reduced(value: unknown, names: Names): unknown {
  if (value === undefined || value === '') return null;
  if (typeof value === 'string') return names.get(value) || value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.length > 0 ? value.map((item) => reduced(item, names)) : null;
  const { '?': header, name } = value as { '?'?: { id?: string; name?: string }; name?: unknown };
  if (header?.id) return names.get(header.id) || (typeof name === 'string' && name) || header.name || header.id;
  const entries = Object.entries(value);
  return entries.length > 0 ? Object.fromEntries(entries.map(([key, item]) => [key, reduced(item, names)])) : null;
}

function between(path: string, before: unknown, after: unknown, secret: boolean): Difference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (isLeaf(before) && isLeaf(after)) return [{ path, ...lines(before, after), secret }];
  // A leaf in the place of a structure, or the other way around: one comes and the other goes.
  if (isLeaf(before) && before !== null) return [...between(path, before, null, secret), ...between(path, null, after, secret)];
  if (isLeaf(after) && after !== null) return [...between(path, before, null, secret), ...between(path, null, after, secret)];
  if (Array.isArray(before ?? after) && Array.isArray(after ?? before)) {
    const [was, is] = [(before ?? []) as unknown[], (after ?? []) as unknown[]];
    const longer = was.length > is.length ? was : is;
    return longer.flatMap((_item, i) => between(`${path}[${i}]`, was[i] ?? null, is[i] ?? null, secret));
  }
  if (Array.isArray(before) || Array.isArray(after)) return [...between(path, before, null, secret), ...between(path, null, after, secret)];
  const [was, is] = [(before ?? {}) as Record<string, unknown>, (after ?? {}) as Record<string, unknown>];
  const keys = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  return keys.flatMap((key) => between(`${path}.${key}`, was[key] ?? null, is[key] ?? null, secret || isSecret(key)));
}

const isScalar = (value: unknown): value is Scalar => value !== null && typeof value !== 'object';

const isLeaf = (value: unknown): value is Leaf => value === null || isScalar(value) || (Array.isArray(value) && value.every(isScalar));

/** Of two texts of several lines only the lines that one of them has alone. */
function lines(before: Leaf, after: Leaf): { before: Leaf; after: Leaf } {
  if (typeof before !== 'string' || typeof after !== 'string' || !(before + after).includes('\n')) return { before, after };
  const [was, is] = [before.split('\n'), after.split('\n')];
  const [gone, come] = [was.filter((line) => !is.includes(line)), is.filter((line) => !was.includes(line))];
  return gone.length + come.length > 0 ? { before: gone.join('\n') || null, after: come.join('\n') || null } : { before, after };
}

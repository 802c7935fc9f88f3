// The input, stored in the browser's tab so that a reload loses nothing but secrets.
import type { Values } from './values';

export interface Kept {
  name: string;
  values: Values;
}

type Memory = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** The key of a form: nested ones have the key of their opener before their own. */
export const keyOf = (environment: string, ...path: string[]): string => ['burano.add', environment, ...path].join('/');

export function read(memory: Memory, key: string): Kept {
  try {
    const kept = JSON.parse(memory.getItem(key) ?? '') as Kept;
    if (typeof kept.name === 'string' && typeof kept.values === 'object' && kept.values !== null) return { name: kept.name, values: kept.values };
  } catch {
    // Nothing was stored, or by another version of the dashboard.
  }
  return { name: '', values: {} };
}

export const write = (memory: Memory, key: string, kept: Kept): void => memory.setItem(key, JSON.stringify(kept));

export const forget = (memory: Memory, key: string): void => memory.removeItem(key);

// The entries of the command palette.
import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';
import { searchWords } from '../packages/packages';

export interface Entry {
  id: string;
  name: string;
  /** The kind of entry, in words. */
  kind: string;
  run: () => void;
}

/** How well a name fits the input: the lower the better, null when it does not. All words must be in it. */
export function fit(name: string, typed: string): number | null {
  const lower = name.toLowerCase();
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.every((word) => lower.includes(word))) return null;
  const first = words[0];
  if (first === undefined || lower.startsWith(first)) return 0;
  return lower.split(/[\s.-]+/).some((part) => part.startsWith(first)) ? 1 : 2;
}

/** The entries that fit, the best first, else in the order they came in. */
export const fitting = (entries: Entry[], typed: string, most = 20): Entry[] =>
  entries
    .map((entry) => ({ entry, fit: fit(entry.name, typed) }))
    .filter((one): one is { entry: Entry; fit: number } => one.fit !== null)
    .sort((a, b) => a.fit - b.fit)
    .slice(0, most)
    .map((one) => one.entry);

/** Applications that the server finds, also by description, tags and author. */
export const foundQuery = (typed: string) =>
  queryOptions({
    queryKey: ['packages', 'palette', typed],
    queryFn: async ({ signal }) =>
      (
        await answered(
          api.GET('/burano/v1/packages', { signal, params: { query: { type: 'Application', catalog: 'true', limit: 8, search: searchWords(typed) } } }),
        )
      ).packages ?? [],
    enabled: typed.trim().length > 1,
  });

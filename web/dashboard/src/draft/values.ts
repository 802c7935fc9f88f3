// Values of properties as short texts: what they were and what they would be.

/** A value in the words of JSON without quotes around texts, at most that many characters of it; null where there is none. */
export function shortValue(value: unknown, most = 120): string | null {
  if (value === null || value === undefined || value === '') return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Objects stand in values as their ids: as the names that people call them where those are known. */
export function named(value: unknown, names: Map<string, string>): unknown {
  if (typeof value === 'string') return names.get(value) || value;
  return Array.isArray(value) ? value.map((item) => named(item, names)) : value;
}

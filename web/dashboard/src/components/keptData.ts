// Metadata of components.

/** Typed metadata: an object in JSON; null for other texts. */
export function metadataOf(typed: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(typed);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

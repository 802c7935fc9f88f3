// The address of the packages' list. It is read before the list is loaded.

/** The server's sort keys of packages. */
export const orders = ['name', 'fqn', 'created'] as const;
export const types = ['Application', 'Library'] as const;
export const sizes = [20, 50, 100] as const;

/** Omitted parts have their defaults. */
export interface Look {
  search?: string;
  type?: (typeof types)[number];
  /** Only packages of the own project. */
  owned?: boolean;
  order?: (typeof orders)[number];
  descending?: boolean;
  limit?: number;
  /** Markers of the pages up to this one. */
  after?: string;
}

const one = <T>(list: readonly T[], value: unknown): T | undefined => list.find((item) => item === value);

/** Reads an address; invalid parts are ignored. */
export function readLook(search: Record<string, unknown>): Look {
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
  return {
    search: text(search.search),
    type: one(types, search.type),
    owned: search.owned === true || undefined,
    order: one(orders, search.order),
    descending: search.descending === true || undefined,
    limit: one(sizes, search.limit),
    after: text(search.after),
  };
}

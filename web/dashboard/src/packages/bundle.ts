// Bundles: files that name packages which belong together.

export interface Named {
  name: string;
  /** '' for any. */
  version: string;
}

export interface Bundle {
  file: string;
  packages: Named[];
}

/** How long a bundle may be, which is a list of names. */
export const mostBytes = 1 << 20;

export const isBundle = (file: string): boolean => /\.(bundle|json)$/i.test(file);

/** Reads a bundle in Murano's form, {"Packages": [{"Name": …, "Version": …}]}; null for other texts. */
export function readBundle(file: string, content: string): Bundle | null {
  let read: unknown;
  try {
    read = JSON.parse(content);
  } catch {
    return null;
  }
  const list = read !== null && typeof read === 'object' && 'Packages' in read ? read.Packages : null;
  if (!Array.isArray(list) || list.length === 0) return null;
  const packages = list.map((one: unknown) => {
    const { Name: name, Version: version } = (one ?? {}) as { Name?: unknown; Version?: unknown };
    return { name: typeof name === 'string' ? name : '', version: typeof version === 'string' ? version : '' };
  });
  return packages.every((one) => one.name !== '') ? { file, packages } : null;
}

/** Possible names of a package's file, as in repositories. */
const filesOf = ({ name, version }: Named): string[] => [...(version ? [`${name}.${version}.zip`] : []), `${name}.zip`];

/** The packages of a bundle without a file. */
export const missing = (bundle: Bundle, files: string[]): string[] =>
  bundle.packages.filter((one) => !filesOf(one).some((file) => files.includes(file))).map((one) => one.name);

/** Puts files in the order of a bundle, in which packages come after their required ones; others follow. */
export function inOrder<T>(bundle: Bundle | null, list: T[], nameOf: (one: T) => string): T[] {
  const names = bundle?.packages.flatMap(filesOf) ?? [];
  const place = (one: T) => (names.includes(nameOf(one)) ? names.indexOf(nameOf(one)) : names.length);
  return [...list].sort((a, b) => place(a) - place(b));
}

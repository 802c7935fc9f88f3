// Names that applications begin with.

/** The name, or with the first number behind it that nobody in the environment has yet: "Hello", "Hello 2". */
export function freeName(wanted: string, taken: Iterable<string>): string {
  const all = new Set(taken);
  for (let count = 1; ; count++) {
    const name = count === 1 ? wanted : `${wanted} ${count}`;
    if (!all.has(name)) return name;
  }
}

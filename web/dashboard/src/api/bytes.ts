const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Writes a number of bytes: "1.5 GiB". */
export function showBytes(bytes: number, language: string): string {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(bytes) / Math.log(1024)));
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(bytes / 1024 ** power)} ${units[power]}`;
}

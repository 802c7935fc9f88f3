// The licences of the packages that are built in.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Manifest {
  name?: string;
  version?: string;
  license?: string;
}

/** The folders of the packages that modules belong to; a package may be inside of another's node_modules. */
export function packagesOf(modules: string[]): string[] {
  const folders = modules.flatMap((id) => {
    const path = id.replace(/^\0/, '').split('?')[0]?.replaceAll('\\', '/') ?? '';
    return /^(.*\/node_modules\/(?:@[^/]+\/)?[^/@][^/]*)\//.exec(path)?.[1] ?? [];
  });
  return [...new Set(folders)].sort();
}

/** Writes down each package with its licence, and the text of that where the package has it. */
export function licencesOf(modules: string[]): string {
  const parts = packagesOf(modules).flatMap((folder) => {
    const file = join(folder, 'package.json');
    if (!existsSync(file)) return [];
    const { name, version, license } = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
    if (!license) throw new Error(`${name} in ${folder} does not say its licence: it cannot be shipped`);
    const text = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
    return [[`${name} ${version}: ${license}`, text && readFileSync(join(folder, text), 'utf8').trim()].filter(Boolean).join('\n\n')];
  });
  return `${parts.join(`\n\n${'-'.repeat(78)}\n\n`)}\n`;
}

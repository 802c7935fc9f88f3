import { readdirSync, readFileSync } from 'node:fs';

import type { Plugin } from 'vite';

/**
 * The unused parts of PatternFly: its other themes and frames, right-to-left scripts, and its icons and fonts, which
 * SVGs and the system's own replace.
 */
const unused = /pf-v6-theme-(felt|glass|high-contrast|redhat)|pf-v6-pficon|pf-v6-m-dir-rtl|\[dir="?rtl"?\]|pf-v6-c-compass|pf-v6-c-page__dock|pf-m-dock|pf-v6-m-(ai-indicator|thinking|legacy-font)/;

const isUnused = (selector: string): boolean => unused.test(selector.replaceAll(/:not\([^()]*\)/g, ''));

/**
 * Classes that are derived from words such as columnGapMd, which appear unchanged in the sources that use them: each
 * for five widths, most of them unused.
 */
const spaced = /\.pf-m-((?:column-gap|row-gap|gap|space-items|spacer|align-items|align-self|align-content|justify-content|sticky-top|sticky-bottom)[\w-]*)/g;

/** leanStyles removes styles of PatternFly that no page can use: more than half of the first page's load. */
export const leanStyles = (): Plugin => ({
  name: 'lean-styles',
  apply: 'build',
  enforce: 'pre',
  transform: {
    filter: { id: /@patternfly\/.*\.css$|@patternfly\/react-styles\/css\/.*\.mjs$/ },
    handler: (code, id) => {
      // Nor does the topology, which can have one.
      if (id.endsWith('/Drawer/drawer.css')) return { code: '', map: null };
      if (id.endsWith('/styles/base.css')) {
        const styles = textOf('node_modules/@patternfly/react-styles/css/components', 'node_modules/@patternfly/react-styles/css/layouts');
        return { code: leanBase(code, styles + textOf('node_modules/@patternfly/react-topology/dist/esm', 'src')), map: null };
      }
      return { code: id.endsWith('.mjs') ? leanNames(code, textOf('src')) : leanPart(code, textOf('src')), map: null };
    },
  },
});

/** Dependencies of some parts, and the parts. */
const instead = [
  // The frame has a place for a drawer, which no page opens, and its navigation for menus that fly out, which it does not have.
  { name: /^\.\.\/Drawer$/, importer: /\/components\/Page\//, id: '\0no-drawer' },
  { name: /^\.\.\/\.\.\/helpers\/Popper\/Popper$/, importer: /\/components\/Nav\//, id: '\0no-popper' },
  // Labels and alerts show their whole text beside them when it is cut off: then is early enough.
  { name: /^\.\.\/Tooltip$/, importer: /\/components\/(Alert|Label)\//, id: '\0late-tooltip' },
];

const absent = (...names: string[]) => `const left = () => { throw new Error('this is left out: see lean.ts'); };
export { ${names.map((name) => `left as ${name}`).join(', ')} };`;

const inPlace: Record<string, string> = {
  '\0no-drawer': absent('Drawer', 'DrawerContent', 'DrawerPanelContent'),
  '\0no-popper': absent('Popper'),
  '\0late-tooltip': `import { createElement, lazy, Suspense } from 'react';
const Late = lazy(() => import('@patternfly/react-core/dist/esm/components/Tooltip/Tooltip.js').then(({ Tooltip }) => ({ default: Tooltip })));
export const Tooltip = (props) => createElement(Suspense, { fallback: props.children ?? null }, createElement(Late, props));`,
};

/**
 * leanFrame loads the frame of all pages without parts that no page uses, and loads rarely used ones when they are
 * used.
 */
export const leanFrame = (): Plugin => ({
  name: 'lean-frame',
  apply: 'build',
  enforce: 'pre',
  resolveId: {
    filter: { id: /^\.\.\/(Drawer|Tooltip)$|\/helpers\/Popper\/Popper$/ },
    handler: (name, importer = '') => instead.find((one) => one.name.test(name) && one.importer.test(importer))?.id,
  },
  load: {
    filter: { id: /^\0(no|late)-/ },
    handler: (id) => inPlace[id],
  },
});

/** textOf is the whole text of the styles and sources below folders. */
function textOf(...folders: string[]): string {
  const files = folders.flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`));
  const read = files.filter((file) => /\.(css|tsx?)$/.test(file)).sort();
  return read.map((file) => readFileSync(file, 'utf8')).join('\n');
}

/** leanPart is a part's style without unused parts and without the spacings that the sources do not name. */
export function leanPart(style: string, sources: string): string {
  const isNamed = namedIn(sources);
  return style.replaceAll(/([^{}]*)(\{[^{}]*\})/g, (_rule, selector: string, body: string) => {
    const selectors = selector.split(/,(?![^(]*\))/).filter((one) => !isUnused(one) && [...one.matchAll(spaced)].every(([, name = '']) => isNamed(name)));
    return selectors.length > 0 ? selectors.join(',') + body : '';
  });
}

/** leanNames is the list of a part's classes without the same spacings. */
export function leanNames(code: string, sources: string): string {
  const isNamed = namedIn(sources);
  return code.replaceAll(/"\w+": "pf-m-[\w-]+",?\s*/g, (entry) => (/-on-/.test(entry) && [...entry.replace('"pf-m', '".pf-m').matchAll(spaced)].some(([, name = '']) => !isNamed(name)) ? '' : entry));
}

function namedIn(sources: string): (name: string) => boolean {
  const words = new Set(sources.match(/\w+/g));
  return (name) => words.has(name.replace(/-on-(sm|md|lg|xl|2xl)(-height)?$/, '').replaceAll(/-(\w)/g, (_all, letter: string) => letter.toUpperCase()));
}

/**
 * leanBase is the base style without the unused themes and without variables that neither users nor the style itself
 * use.
 */
export function leanBase(style: string, users: string): string {
  const rules = rulesOf(style.replaceAll(/\/\*[^]*?\*\//g, '')).flatMap(([selector, body]) => {
    if (selector.startsWith('@font-face')) return [];
    if (selector.startsWith('@')) return [selector + body];
    const selectors = selector.split(/,(?![^(]*\))/).filter((one) => !isUnused(one));
    return selectors.length > 0 ? [selectors.join(',') + body] : [];
  });
  const left = rules.join('\n');
  const declaration = /(--[\w-]+)\s*:([^;}]*);?/g;
  const values = new Map<string, string>();
  for (const [, name = '', value = ''] of left.matchAll(declaration)) values.set(name, `${values.get(name) ?? ''} ${value}`);
  const used = namesIn(users + left.replaceAll(declaration, ''));
  // A set that is visited while it grows: the variables of a used variable are used.
  for (const name of used) for (const inner of namesIn(values.get(name) ?? '')) used.add(inner);
  return left.replaceAll(declaration, (text, name: string) => (used.has(name) ? text : ''));
}

const namesIn = (text: string): Set<string> => new Set(text.match(/--[\w-]+/g) ?? []);

/** The outermost rules of a style, each as its selector and its body. */
function rulesOf(style: string): [string, string][] {
  const rules: [string, string][] = [];
  let depth = 0;
  let start = 0;
  let body = 0;
  for (let i = 0; i < style.length; i++) {
    if (style[i] === '{' && depth++ === 0) body = i;
    if (style[i] !== '}' || --depth > 0) continue;
    rules.push([style.slice(start, body).trim(), style.slice(body, i + 1)]);
    start = i + 1;
  }
  return rules;
}

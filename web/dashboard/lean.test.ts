import { expect, it } from 'vitest';

import { leanBase, leanNames, leanPart } from './lean';

it('leaves themes and variables out that nothing uses', () => {
  const style = `/* a { */ @font-face { src: none }
:root { --a: var(--b); --b: 1px; --c: 2px; }
:root:where(.pf-v6-theme-dark), :root:where(.pf-v6-theme-felt) { --b: 3px; }
:root:where(.pf-v6-theme-high-contrast) { --b: 4px; }
@media (width > 1px) { .x { --a: 5px } }`;
  expect(leanBase(style, 'p { width: var(--a) }').replaceAll(/\s+/g, ' ')).toBe(
    ':root{ --a: var(--b); --b: 1px; } :root:where(.pf-v6-theme-dark){ --b: 3px; } @media (width > 1px){ .x { --a: 5px } }'.replaceAll('{ ', '{ '),
  );
});

it('leaves spacings out that the sources do not name', () => {
  const style = '@media (width > 1px) { .pf-m-gap-md-on-lg { gap: 1px } .pf-m-gap-xl-on-lg, .pf-m-hidden-on-lg { gap: 2px } .pf-m-sticky-top { top: 0 } }';
  expect(leanPart(style, "gap={{ lg: 'gapMd' }}").replaceAll(/\s+/g, ' ')).toBe('@media (width > 1px) { .pf-m-gap-md-on-lg { gap: 1px } .pf-m-hidden-on-lg { gap: 2px } }');
});

it('leaves out what nothing chooses, and keeps what stands for all else', () => {
  const style = '.a:not(.pf-v6-theme-glass) { top: 0 } .pf-v6-theme-glass .a { top: 1px } :where(.pf-v6-m-dir-rtl, [dir=rtl]) .a, .b { top: 2px }';
  expect(leanPart(style, '').replaceAll(/\s+/g, ' ').trim()).toBe('.a:not(.pf-v6-theme-glass) { top: 0 } .b { top: 2px }');
});

it('leaves their names out, too', () => {
  const code = 'export default {\n"modifiers": {\n"gapMdOnLg": "pf-m-gap-md-on-lg",\n"gapXlOnLg": "pf-m-gap-xl-on-lg",\n"gapXl": "pf-m-gap-xl",\n"hiddenOnLg": "pf-m-hidden-on-lg"\n}}';
  expect(leanNames(code, "gap={{ lg: 'gapMd' }}")).toBe(code.replace('"gapXlOnLg": "pf-m-gap-xl-on-lg",\n', ''));
});

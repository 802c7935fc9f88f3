// What axe, a checker of accessibility, finds on a page.
import { readFileSync } from 'node:fs';

import { axeSource, eventually } from './harness.mjs';

export const axe = readFileSync(axeSource, 'utf8');

/** Ends all that moves: what fades has neither the colours nor the sizes that it will have. */
const endAnimations = (page) =>
  page.evaluate(async () => {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    for (const one of document.getAnimations().filter((each) => each.effect?.getComputedTiming().endTime !== Infinity)) one.finish();
  });

/** What axe finds on a page that is serious or critical, when nothing moves any more. The page has axe as an init script. */
export async function barriers(page, options = {}) {
  await endAnimations(page);
  const { violations } = await page.evaluate((more) => globalThis.axe.run(document, { resultTypes: ['violations'], preload: false, ...more }), options);
  return violations
    .filter((one) => ['serious', 'critical'].includes(one.impact))
    .map((one) => `${one.id} (${one.impact}): ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')}`);
}

const widths = () =>
  ['html', 'main', '[role="dialog"]'].flatMap((name) => [...document.querySelectorAll(name)].map((box) => [name, box.scrollWidth - box.clientWidth])).filter(([, width]) => width > 0);

/** What is wrong with how a page looks: barriers in light, those of colours in dark, and what is wider than a narrow window. The page is in a
 * wide window and light, and is so again. */
export async function blemishes(page) {
  const wide = page.viewportSize();
  const inLight = await barriers(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.locator('html.pf-v6-theme-dark').waitFor({ state: 'attached' });
  const inDark = await barriers(page, { runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } });
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 360, height: 800 });
  await endAnimations(page);
  // What follows the size of the window does so after it has changed.
  let over = [];
  await eventually(async () => (over = await page.evaluate(widths)), () => over.length === 0, 'the widths', 5_000).catch(() => undefined);
  await page.setViewportSize(wide);
  return [...inLight, ...inDark.filter((one) => !inLight.includes(one)).map((one) => `in dark: ${one}`), ...over.map(([name, width]) => `${name} is ${width} pixels too wide`)];
}

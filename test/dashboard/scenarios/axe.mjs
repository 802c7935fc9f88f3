// What axe, a checker of accessibility, finds on a page.
import { readFileSync } from 'node:fs';

import { axeSource } from './harness.mjs';

export const axe = readFileSync(axeSource, 'utf8');

/** What axe finds on a page that is serious or critical. The page has axe as an init script. */
export async function barriers(page) {
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter((one) => ['serious', 'critical'].includes(one.impact))
    .map((one) => `${one.id} (${one.impact}): ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')}`);
}

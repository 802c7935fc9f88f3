// Takes a picture of every page and sheet, light and dark, wide and narrow, into BURANO_SCREENSHOTS. BURANO_SCENARIOS names those to take, as a
// regular expression.
import { mkdirSync } from 'node:fs';

import { browser, open } from './harness.mjs';
import { allPages } from './pages.mjs';
import { allSheets, eachSheet } from './sheets.mjs';

const folder = process.env.BURANO_SCREENSHOTS;
const wanted = new RegExp(process.env.BURANO_SCENARIOS ?? '');
mkdirSync(folder, { recursive: true });
const { request } = (await open('demo', { watch: false })).context();
const pages = await allPages(request);
const sheets = await allSheets(request, pages);
const all = { ...Object.fromEntries(Object.entries(pages).map(([name, address]) => [name, (page) => page.goto(address).then(() => undefined)])), ...sheets };
/** Pages scroll within their frame: the window is as high as the whole page while its picture is taken. */
async function picture(shown, path) {
  const { width, height } = shown.viewportSize();
  const below = await shown.evaluate(() => Math.max(0, ...[...document.querySelectorAll('.pf-v6-c-page__main-container, main')].map((box) => box.scrollHeight - box.clientHeight)));
  await shown.setViewportSize({ width, height: Math.min(height + below, 5_000) });
  await shown.screenshot({ path, animations: 'disabled' });
  await shown.setViewportSize({ width, height });
}

const missing = [];
for (const colorScheme of ['light', 'dark']) {
  for (const width of [1280, 360]) {
    const page = await open('demo', { colorScheme, viewport: { width, height: width === 360 ? 800 : 900 }, watch: false });
    page.context().setDefaultTimeout(20_000);
    for (const [name, show] of Object.entries(all).filter(([name]) => wanted.test(name))) {
      const path = `${folder}/${name}-${colorScheme}-${width}.png`;
      await eachSheet(page, show, (shown) => picture(shown, path)).catch((error) => missing.push(`${path}: ${error.message}`));
    }
    await page.context().close();
  }
}
await (await browser()).close();
console.log(`the pictures are in ${folder}`);
if (missing.length > 0) {
  console.error(missing.join('\n'));
  process.exitCode = 1;
}

// Takes a picture of every page, light and dark, wide and narrow, into BURANO_SCREENSHOTS.
import { mkdirSync } from 'node:fs';

import { browser, calm, open } from './harness.mjs';
import { allPages } from './pages.mjs';

const folder = process.env.BURANO_SCREENSHOTS;
mkdirSync(folder, { recursive: true });
const first = await open('demo', { watch: false });
const pages = await allPages(first.context().request);
for (const colorScheme of ['light', 'dark']) {
  for (const width of [1280, 360]) {
    const look = { colorScheme, viewport: { width, height: width === 360 ? 800 : 900 }, watch: false };
    const take = async (page, name) => {
      await calm(page);
      await page.screenshot({ path: `${folder}/${name}-${colorScheme}-${width}.png`, fullPage: true, animations: 'disabled' });
    };
    const entrance = await open(null, look);
    await entrance.goto('');
    await entrance.locator('#signin-user').waitFor();
    await take(entrance, 'sign-in');
    await entrance.context().close();
    const page = await open('demo', look);
    for (const [name, address] of Object.entries(pages)) {
      await page.goto(address);
      await take(page, name);
    }
    await page.context().close();
  }
}
await (await browser()).close();
console.log(`the pictures are in ${folder}`);

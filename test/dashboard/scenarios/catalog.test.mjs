import { assert, calm, environment, scenario, sees } from './harness.mjs';

const tile = (page, name) => page.getByRole('heading', { level: 2, name });

scenario('what is searched for in the catalog stands in the address, and a reload keeps it', {}, async (page) => {
  await page.goto('catalog');
  await sees(page, 'Says what it is told to');
  await page.getByRole('searchbox', { name: 'Search applications' }).fill('kubernetes');
  await tile(page, 'Hello').waitFor({ state: 'detached' });
  await page.waitForURL(/search=kubernetes/);
  await page.reload();
  await calm(page);
  assert.equal(await page.getByRole('searchbox', { name: 'Search applications' }).inputValue(), 'kubernetes');
  assert.equal(await tile(page, 'Hello').count(), 0);
});

scenario('what is looked for by tag is found', { thorough: true }, async (page) => {
  await page.goto('catalog?search=greeting');
  await sees(page, 'Says what it is told to');
});

scenario('a category stands in the address, and a reload keeps it', {}, async (page) => {
  await page.goto('catalog');
  await sees(page, 'Says what it is told to');
  const select = page.getByRole('combobox', { name: 'Category' }).or(page.locator('select[aria-label="Category"]')).first();
  const category = await select.locator('option').nth(1).getAttribute('value');
  await select.selectOption(category);
  await page.waitForURL(/category=/);
  await page.reload();
  await calm(page);
  assert.equal(await select.inputValue(), category);
});

scenario('the applications that come with Burano are found by category, and their cards name it', {}, async (page) => {
  await page.goto('catalog');
  await sees(page, 'Says what it is told to');
  await page.getByRole('combobox', { name: 'Category' }).selectOption('Databases');
  await tile(page, 'PostgreSQL').waitFor();
  await tile(page, 'Hello').waitFor({ state: 'detached' });
  assert.equal(await tile(page, 'nginx').count(), 0);
  const card = page.locator('.pf-v6-c-card').filter({ has: tile(page, 'PostgreSQL') });
  await card.getByRole('list', { name: 'Category' }).getByText('Databases').waitFor();
});

scenario('a search that finds nothing says so, and is cleared', { thorough: true }, async (page) => {
  await page.goto('catalog?search=nothing-is-called-that');
  await sees(page, 'No application matches');
  await page.getByRole('button', { name: 'Clear search and category' }).click();
  await sees(page, 'Says what it is told to');
});

scenario('who looks for an application for an environment finds the way back to it', {}, async (page) => {
  const id = await environment(page.context().request);
  await page.goto(`environments/${id}`);
  await page.getByRole('button', { name: 'Add application' }).first().click();
  await sees(page, /Choose the application to add to/);
  await page.getByRole('link', { name: 'Back to the environment' }).click();
  await page.waitForURL((url) => url.pathname.endsWith(`environments/${id}`));
});

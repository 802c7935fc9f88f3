import { axe, blemishes } from './axe.mjs';
import { assert, call, calm, environment, scenario, sees } from './harness.mjs';

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

scenario('what works here comes first in the catalog, and a card names what is missing and who mends it', {}, async (page) => {
  await page.addInitScript(axe);
  const { applications } = await call(page.context().request, 'GET', '/burano/v1/needs');
  const unmet = new Set(applications.filter((one) => one.works === false).map((one) => one.id));
  assert.ok(unmet.size > 0 && unmet.size < applications.length, `${unmet.size} of ${applications.length} do not work here`);
  await page.goto('catalog');
  const nginx = page.locator('.pf-v6-c-card').filter({ has: page.getByRole('link', { name: 'nginx', exact: true }) });
  await nginx.getByText('There is no container image glance.local/nginx:1.22; the form accepts another one, also of a registry. Who can mend it: members of the project or the operator of the cloud.').waitFor();
  const cards = await page.locator('.pf-v6-c-card h2 a').evaluateAll((links) => links.map((link) => link.pathname.split('/').at(-1)));
  const works = cards.map((id) => !unmet.has(id));
  assert.deepEqual(works, works.toSorted((a, b) => Number(b) - Number(a)), 'what works comes first');
  assert.deepEqual(await blemishes(page), []);
  const link = nginx.getByRole('link', { name: 'nginx', exact: true });
  const nginxId = (await link.getAttribute('href')).split('/').at(-1);
  await link.click();
  await page.getByRole('heading', { level: 1, name: 'nginx', exact: true }).waitFor();
  await page.getByRole('heading', { name: /Not ready in this project yet$/ }).waitFor();
  assert.deepEqual(await blemishes(page), []);

  // The wizard has the notice, too, and hinders nobody.
  const id = await environment(page.context().request);
  await page.goto(`environments/${id}/add/${nginxId}`);
  await page.getByRole('heading', { name: /Not ready in this project yet$/ }).waitFor();
  assert.deepEqual(await blemishes(page), []);
  assert.ok(await page.getByRole('button', { name: 'Next', exact: true }).isEnabled());

  // A cloud that does not answer hides nothing.
  await page.route('**/burano/v1/needs*', (route) => route.fulfill({ json: { applications: applications.map((one) => ({ ...one, works: null, missing: [] })) } }));
  await page.goto('catalog');
  await nginx.waitFor();
  assert.equal(await page.getByText('Not ready in this project yet').count(), 0);
});

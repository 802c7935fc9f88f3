// Several people, several environments, and what administrators look after.
import { axe, barriers } from './axe.mjs';
import { addressOf, box, through } from './form.mjs';
import { assert, call, deploy, deployShown, draft, environment, eventually, fresh, memberOf, open, scenario, sees } from './harness.mjs';

const rowOf = (page, name) => page.getByRole('row').filter({ hasText: name });

const hello = { type: 'io.burano.test.Hello', greeting: 'Hello' };

const ready = (request, id) => eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', 'the deployment');

scenario('two users work on one environment: each sees that the other has a draft, and the later one that it is out of date', {}, async (page) => {
  const { request } = page.context();
  const id = await environment(request);
  const name = await memberOf('demo');
  const other = await open(name);
  for (const one of [page, other]) {
    await one.goto(await addressOf(request, id, 'io.burano.test.Hello'));
    await box(one, 'Greeting').waitFor();
    await through(one);
    await sees(one, 'Your draft has changes that are not deployed');
  }
  await page.reload();
  await sees(page, 'There is another draft of this environment');
  await deployShown(other);
  await other.getByRole('status').filter({ hasText: 'Successful' }).first().waitFor();
  await page.reload();
  await sees(page, 'Your draft is out of date');
  await page.getByRole('button', { name: 'Discard it' }).click();
  await page.getByText('Your draft is out of date').waitFor({ state: 'detached' });
  assert.equal((await call(request, 'GET', `/v1/environments/${id}`)).services.length, 1);
  assert.deepEqual(other.seen, []);
  await other.context().close();
});

scenario('several environments are deleted at once', { thorough: true }, async (page) => {
  const { request } = page.context();
  const name = fresh('together');
  for (const one of ['a', 'b']) await environment(request, `${name} ${one}`);
  await page.goto('environments');
  await page.getByRole('textbox', { name: 'Filter by name' }).fill(name);
  for (const one of ['a', 'b']) await page.getByRole('checkbox', { name: `Choose ${name} ${one}` }).check();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  for (const one of ['a', 'b']) await rowOf(page, `${name} ${one}`).waitFor({ state: 'detached' });
});

scenario('several environments are deployed and then abandoned at once', {}, async (page) => {
  const { request } = page.context();
  const name = fresh('in a row');
  const ids = [];
  for (const one of ['a', 'b']) {
    const id = await environment(request, `${name} ${one}`);
    ids.push(id);
    await page.goto(await addressOf(request, id, 'io.burano.test.Hello'));
    await box(page, 'Greeting').waitFor();
    await through(page);
    await sees(page, 'Your draft has changes that are not deployed');
  }
  await page.goto('environments');
  await page.getByRole('textbox', { name: 'Filter by name' }).fill(name);
  const all = async () => {
    for (const one of ['a', 'b']) await page.getByRole('checkbox', { name: `Choose ${name} ${one}` }).check();
  };
  await all();
  await deployShown(page);
  for (const id of ids) await ready(request, id);
  await page.reload();
  await page.getByRole('textbox', { name: 'Filter by name' }).fill(name);
  await all();
  await page.getByRole('button', { name: 'Abandon', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Abandon', exact: true }).click();
  for (const one of ['a', 'b']) await rowOf(page, `${name} ${one}`).waitFor({ state: 'detached' });
});

scenario('an action of a component asks for its argument and shows what it returned', {}, async (page) => {
  const { request } = page.context();
  const made = await deploy(request, hello);
  await ready(request, made.environment);
  const [component] = (await call(request, 'GET', `/v1/environments/${made.environment}`)).services;
  await page.goto(`environments/${made.environment}/components/${component['?'].id}`);
  await page.getByRole('button', { name: /^Actions/ }).click();
  await page.getByRole('menuitem', { name: /again/i }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: /whom/i }).fill('world');
  await dialog.getByRole('button', { name: 'Run' }).click();
  await dialog.getByText('Hello world').first().waitFor();
});

scenario('a component is removed, and is gone after the next deployment', {}, async (page) => {
  const { request } = page.context();
  const made = await deploy(request, { ...hello, name: 'stays' }, { ...hello, name: 'leaves' });
  await ready(request, made.environment);
  await page.goto(`environments/${made.environment}`);
  await page.getByRole('button', { name: 'Remove leaves from the draft' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await sees(page, 'Your draft has changes that are not deployed');
  await deployShown(page);
  await page.getByRole('status').filter({ hasText: 'Successful' }).first().waitFor();
  await page.goto(`environments/${made.environment}`);
  await rowOf(page, 'stays').first().waitFor();
  assert.equal(await rowOf(page, 'leaves').count(), 0);
});

scenario('a category is added, is refused a second time, and is deleted', { thorough: true, user: 'admin' }, async (page) => {
  const name = fresh('category');
  const add = async () => {
    await page.getByRole('button', { name: 'Add category' }).first().click();
    await page.getByRole('dialog').getByLabel('Name').fill(name);
    await page.getByRole('dialog').getByRole('button', { name: 'Add category' }).click();
  };
  await page.goto('categories');
  await add();
  await rowOf(page, name).waitFor();
  await add();
  await page.getByRole('dialog').locator('.pf-v6-c-alert.pf-m-danger').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: `Delete ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await rowOf(page, name).waitFor({ state: 'detached' });
});

scenario('the topology is gone through by keyboard alone', {}, async (page) => {
  const { request } = page.context();
  const made = await deploy(request, { ...hello, name: 'first' }, { ...hello, name: 'second' });
  await ready(request, made.environment);
  await page.goto(`environments/${made.environment}?tab=topology`);
  const find = page.getByRole('textbox', { name: 'Find an object' });
  await find.waitFor();
  for (let i = 0; i < 100 && !(await find.evaluate((element) => element === document.activeElement)); i++) await page.keyboard.press('Tab');
  await page.keyboard.type('second');
  const item = page.getByRole('menuitem', { name: /second/ });
  await item.waitFor();
  for (let i = 0; i < 10 && !(await item.evaluate((element) => element.contains(document.activeElement) || element === document.activeElement)); i++) await page.keyboard.press('Tab');
  await page.getByRole('region', { name: 'second' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'second' }).waitFor();
});

scenario('an application is deployed quickly: its environment gets a name by itself', {}, async (page) => {
  await page.goto('catalog?search=greeting');
  await page.getByRole('link', { name: 'Hello', exact: true }).click();
  await page.getByRole('button', { name: 'Quick deploy' }).click();
  await box(page, 'Greeting').waitFor();
  const onward = page.getByRole('button', { name: 'Next', exact: true });
  const end = page.getByRole('button', { name: /^(Deploy|Add to environment|Add and deploy)/ });
  await eventually(
    async () => {
      if (!(await end.isVisible()) && (await onward.isVisible())) await onward.click();
      return end.isVisible();
    },
    Boolean,
    'the end of the form',
  );
  await end.click();
  await page.getByRole('status').filter({ hasText: 'Successful' }).first().waitFor();
});

scenario('what a package offers is not seen by other projects until it is public', { user: 'admin' }, async (page) => {
  const { request } = page.context();
  const other = await open('other');
  const seen = async () => (await call(other.context().request, 'GET', '/v1/catalog/packages?fqn=io.burano.test.Loops&catalog=true')).packages.length;
  const toggle = page.getByRole('switch', { name: 'Loops is public' });
  await page.goto('packages?search=Loops');
  await toggle.waitFor();
  assert.equal(await seen(), 1);
  await toggle.click({ force: true });
  await page.getByRole('switch', { name: 'Loops is public', checked: false }).waitFor();
  assert.equal(await seen(), 0);
  await toggle.click({ force: true });
  await page.getByRole('switch', { name: 'Loops is public', checked: true }).waitFor();
  assert.equal(await seen(), 1);
  await call(request, 'GET', '/v1/catalog/packages');
  await other.context().close();
});

scenario('who may see all projects finds an environment of another one, and whose it is', { thorough: true, user: 'admin' }, async (page) => {
  const other = await open('demo');
  const name = fresh('of another project');
  const id = await environment(other.context().request, name);
  await other.context().close();
  await page.addInitScript(axe);
  await page.goto('environments');
  await page.getByRole('link', { name: 'Environments of all projects' }).click();
  await page.getByRole('textbox', { name: 'Filter by name' }).fill(name);
  const row = page.getByRole('row').filter({ hasText: name });
  await row.getByText('demo', { exact: true }).waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByRole('combobox', { name: 'Project' }).selectOption('admin');
  await sees(page, 'No environment matches');
  await page.reload();
  await page.getByRole('combobox', { name: 'Project' }).selectOption('demo');
  await page.getByRole('textbox', { name: 'Filter by name' }).fill(name);
  await row.getByRole('link').click();
  await page.waitForURL(`**/environments/${id}`);
  await sees(page, 'This environment belongs to the project demo');
});

scenario('who sees one project is not led to all of them', { thorough: true }, async (page) => {
  await page.goto('environments');
  await page.getByRole('heading', { level: 1, name: 'Environments' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'Environments of all projects' }).count(), 0);
  await page.goto('environments/all');
  await sees(page, 'Access was denied to this resource.');
});

scenario('an administrator has the cloud looked at, and nobody else', { user: 'admin' }, async (page) => {
  await page.goto('catalog');
  await page.getByRole('link', { name: 'Cloud check' }).click();
  await rowOf(page, 'node image').filter({ hasText: 'To do: ' }).first().waitFor();
  await sees(page, 'made, used and revoked');
  const order = ['Failed', 'Warning', 'Well'];
  const states = await page.locator('td[data-label=State]').allInnerTexts();
  assert.deepEqual(states, [...states].sort((a, b) => order.indexOf(a) - order.indexOf(b)), 'what is bad comes first');
  await page.getByRole('button', { name: 'Look again' }).click();
  await page.locator('button:not([disabled])', { hasText: 'Look again' }).waitFor();
  const member = await open(await memberOf('demo'));
  await member.goto('doctor');
  await sees(member, 'Access was denied to this resource.');
  assert.equal(await member.getByRole('link', { name: 'Cloud check' }).count(), 0);
});

scenario('an image is marked, and its mark taken away', { user: 'admin' }, async (page) => {
  const { request } = page.context();
  const { images } = await call(request, 'GET', '/burano/v1/cloud/images');
  const { id, name, type, title } = images.find((one) => one.name === 'burano-node');
  const row = rowOf(page, name);
  try {
    await page.goto('images');
    await row.getByRole('button', { name: `Change the mark: ${name}` }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Title').fill('For a moment');
    await dialog.getByRole('button', { name: 'Mark' }).click();
    await row.filter({ hasText: 'For a moment' }).waitFor();
    await row.getByRole('button', { name: `Take the mark away: ${name}` }).click();
    await row.filter({ hasText: 'Not marked' }).waitFor();
    await row.getByRole('button', { name: `Mark the image ${name}` }).waitFor();
  } finally {
    // Forms of other scenarios find the image by its mark.
    await call(request, 'PUT', `/burano/v1/cloud/images/${id}/mark`, { type, title });
  }
});

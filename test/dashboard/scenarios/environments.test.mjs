import { axe, blemishes } from './axe.mjs';
import { addressOf } from './form.mjs';
import { assert, call, deploy, environment, eventually, fresh, scenario, sees } from './harness.mjs';

const rowOf = (page, name) => page.getByRole('row').filter({ hasText: name });

scenario('an environment is created, renamed and deleted', {}, async (page) => {
  const name = fresh('short life');
  await page.goto('environments');
  await page.getByRole('button', { name: 'Create environment' }).first().click();
  await page.getByRole('dialog').getByLabel('Name').fill(name);
  await page.getByRole('dialog').getByRole('button', { name: 'Create environment' }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();

  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill(`${name} renamed`);
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { level: 1, name: `${name} renamed` }).waitFor();

  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { level: 1, name: 'Environments' }).waitFor();
  await rowOf(page, name).waitFor({ state: 'detached' });
});

scenario('a region is chosen to work in: new environments are made there, and what can be chosen is of it', {}, async (page) => {
  const name = fresh('elsewhere');
  await page.goto('environments');
  await page.getByRole('button', { name: 'Choose a region: local' }).click();
  await page.getByRole('menuitem', { name: 'RegionTwo' }).click();
  await page.getByRole('button', { name: 'Choose a region: RegionTwo' }).waitFor();
  await page.getByRole('button', { name: 'Create environment' }).first().click();
  const dialog = page.getByRole('dialog');
  assert.equal(await dialog.getByLabel('Region').inputValue(), 'RegionTwo');
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByRole('button', { name: 'Create environment' }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await sees(page, 'Region: RegionTwo');
  const id = new URL(page.url()).pathname.split('/').at(-1);
  assert.equal(await call(page.context().request, 'GET', `/v1/environments/${id}/model/region`), 'RegionTwo');

  const asked = page.waitForResponse((answer) => new URL(answer.url()).pathname.endsWith('/cloud/images'));
  await page.goto('images');
  assert.equal(new URL((await asked).url()).searchParams.get('region'), 'RegionTwo');
  await page.getByRole('button', { name: 'Choose a region: RegionTwo' }).click();
  await page.getByRole('menuitem', { name: 'local' }).click();
  await page.getByRole('button', { name: 'Choose a region: local' }).waitFor();

  // The environment stays where it is, and its forms ask there.
  const flavors = page.waitForResponse((answer) => new URL(answer.url()).pathname.endsWith('/cloud/flavors'));
  await page.goto(`${await addressOf(page.context().request, id, 'io.burano.test.Fields')}?step=2`);
  assert.equal(new URL((await flavors).url()).searchParams.get('region'), 'RegionTwo');
});

scenario('deleting is asked for first, and saying no keeps the environment', {}, async (page) => {
  const name = fresh('kept');
  const id = await environment(page.context().request, name);
  await page.goto(`environments/${id}`);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal((await call(page.context().request, 'GET', `/v1/environments/${id}`)).name, name);
});

scenario('the dialog that deletes says what becomes of volumes and shares, in the list and for several, too', {}, async (page) => {
  const { request } = page.context();
  const [first, second] = [fresh('with volumes'), fresh('with volumes')];
  const sentence = (id) => `cluster kube (${id}) is destroyed, with everything that is in it; its volumes in Cinder and shares in Manila stay (keepVolumes), and are yours to delete`;
  const ids = [await environment(request, first), await environment(request, second)];
  assert.deepEqual(await call(request, 'GET', `/burano/v1/environments/${ids[0]}/deletion`), { means: [], goes: [], stays: [], consents: [], busy: null, undelete_seconds: 7 * 24 * 3600 });
  const clusters = (id) => ({ goes: [sentence(id)], stays: ['claim data of pod db'], consents: [{ object_id: `c-${id}`, name: 'kube', message: sentence(id), claims: [] }] });
  await page.route('**/deletion', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), ...clusters(new URL(route.request().url()).pathname.split('/').at(-2)) } });
  });
  const dialog = page.getByRole('dialog');
  await page.goto(`environments/${ids[0]}`);
  await page.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByRole('checkbox', { name: sentence(ids[0]) }).waitFor();
  await dialog.getByText('claim data of pod db').waitFor();
  assert.equal(await dialog.getByText(sentence(ids[0])).count(), 1, 'it is said once');
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  await page.goto('environments');
  await rowOf(page, first).getByRole('checkbox').check();
  await rowOf(page, second).getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Delete', exact: true }).first().click();
  for (const one of [first, second]) await dialog.getByRole('heading', { name: one }).waitFor();
  const agree = dialog.getByRole('button', { name: 'Delete', exact: true });
  for (const id of ids) {
    assert.equal(await agree.isDisabled(), true);
    await dialog.getByRole('checkbox', { name: sentence(id) }).check();
  }
  assert.equal(await agree.isDisabled(), false);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
});

scenario('an environment is created with a network of IPv4 and IPv6', {}, async (page) => {
  await page.goto('environments');
  await page.getByRole('button', { name: 'Create environment' }).first().click();
  const dialog = page.getByRole('dialog');
  const name = fresh('of both');
  await dialog.getByRole('textbox', { name: 'Name' }).fill(name);
  const range = dialog.getByRole('textbox', { name: 'IPv6 range of the new network (optional)' });
  const create = dialog.getByRole('button', { name: 'Create environment' });
  await range.fill('10.0.0.0/24');
  assert.equal(await create.isDisabled(), true, 'that is no range of IPv6');
  await range.fill('fd00:20::/64');
  await create.click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
  const id = new URL(page.url()).pathname.split('/').at(-1);
  const { environment: made } = await call(page.context().request, 'GET', `/v1/environments/${id}/model/defaultNetworks`);
  assert.deepEqual([made['?'].type.split('/')[0], made.name, made.ipv6Cidr], ['io.murano.resources.CustomNeutronNetwork', `${name}-network`, 'fd00:20::/64']);
});

scenario('a deployed environment is abandoned', {}, async (page) => {
  const { request } = page.context();
  const made = await deploy(request, { type: 'io.burano.test.Hello', greeting: 'Hello' });
  const ready = await eventually(() => call(request, 'GET', `/v1/environments/${made.environment}`), (now) => now.status === 'ready', 'the deployment');
  await page.goto('environments');
  await rowOf(page, ready.name).getByRole('button', { name: /^Actions of/ }).click();
  await page.getByRole('menuitem', { name: 'Abandon' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Abandon' }).click();
  await rowOf(page, ready.name).waitFor({ state: 'detached' });
});

scenario('a name that is taken is refused in the dialog, with the reason', {}, async (page) => {
  const name = fresh('taken');
  await environment(page.context().request, name);
  await page.goto('environments');
  await page.getByRole('button', { name: 'Create environment' }).first().click();
  await page.getByRole('dialog').getByLabel('Name').fill(name);
  await page.getByRole('dialog').getByRole('button', { name: 'Create environment' }).click();
  await page.getByRole('dialog').locator('.pf-v6-c-alert.pf-m-danger').waitFor();
});

scenario('the list is filtered by name as one types', { thorough: true }, async (page) => {
  const { request } = page.context();
  const [one, two] = [fresh('amber'), fresh('cobalt')];
  await environment(request, one);
  await environment(request, two);
  await page.goto('environments');
  await page.getByRole('textbox', { name: 'Filter by name' }).fill(one);
  await sees(page, one);
  await rowOf(page, two).waitFor({ state: 'detached' });
  await page.getByRole('textbox', { name: 'Filter by name' }).fill('no such name');
  await sees(page, 'No environment matches');
});

scenario('metadata of a component is edited in the draft', { thorough: true }, async (page) => {
  const { request } = page.context();
  const { environment: id } = await deploy(request, { type: 'io.burano.test.Hello', greeting: 'Hello' });
  await eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', 'the deployment');
  const [component] = (await call(request, 'GET', `/v1/environments/${id}`)).services;
  await page.goto(`environments/${id}/components/${component['?'].id}?tab=metadata`);
  await page.getByRole('button', { name: 'Edit metadata' }).click();
  const dialog = page.getByRole('dialog');
  const box = dialog.getByRole('textbox', { name: 'Metadata' });
  await box.fill('no JSON');
  assert.ok(await dialog.getByRole('button', { name: 'Save' }).isDisabled());
  await box.fill('{"owner": "billing"}');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await sees(page, /"owner": "billing"/);
});

scenario('an environment is created in a network that is there', {}, async (page) => {
  const { request } = page.context();
  await page.route('**/burano/v1/cloud/networks', (route) =>
    route.fulfill({ json: { networks: [{ id: 'n1', name: 'office', external: false, subnets: ['s1'] }, { id: 'n2', name: 'outside', external: true, subnets: ['s2'] }] } }));
  await page.goto('environments');
  await page.getByRole('button', { name: 'Create environment' }).click();
  const dialog = page.getByRole('dialog');
  const name = fresh('in the office');
  await dialog.getByRole('textbox', { name: 'Name' }).fill(name);
  const networks = dialog.getByRole('combobox', { name: 'Network of its servers' });
  await networks.locator('option', { hasText: 'office' }).waitFor({ state: 'attached' });
  assert.equal(await networks.locator('option', { hasText: 'outside' }).count(), 0, 'servers stand in no external network');
  await networks.selectOption('office, subnet s1');
  await dialog.getByRole('button', { name: 'Create environment' }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
  const id = new URL(page.url()).pathname.split('/').at(-1);
  const { environment: made } = await call(request, 'GET', `/v1/environments/${id}/model/defaultNetworks`);
  assert.deepEqual([made.internalNetworkName, made.internalSubnetworkName], ['n1', 's1']);
});

scenario('an environment has a schedule by which it sleeps, and without servers it is not hibernated', {}, async (page) => {
  await page.addInitScript(axe);
  const { request } = page.context();
  const { environment: id } = await deploy(request, { type: 'io.burano.test.Hello', greeting: 'Hello' });
  await eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', 'the deployment');
  await page.goto(`environments/${id}`);
  await page.getByRole('button', { name: 'Hibernate' }).click();
  await sees(page, 'it has no servers in the cloud');
  assert.ok(await page.getByRole('dialog').getByRole('button', { name: 'Hibernate' }).isDisabled());
  await page.getByRole('button', { name: 'Cancel' }).click();

  await page.getByRole('button', { name: 'Schedule' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Sleeps' }).fill('at eight');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await sees(dialog, /needs five: minute, hours/);
  assert.deepEqual(await blemishes(page), []);
  await dialog.getByRole('textbox', { name: 'Sleeps' }).fill('0 20 * * 1-5');
  await dialog.getByRole('textbox', { name: 'Time zone' }).fill('Europe/Berlin');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  const { schedule } = await call(request, 'GET', `/burano/v1/environments/${id}/hibernation`);
  assert.deepEqual([schedule.zone, schedule.sleep, schedule.wake], ['Europe/Berlin', ['0 20 * * 1-5'], ['0 7 * * 1-5']]);
  await page.getByRole('button', { name: 'Schedule' }).click();
  await sees(dialog, /no standing delegation/);
  await sees(dialog, 'Sleeps next');
  await dialog.getByRole('button', { name: 'End the schedule' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.equal((await call(request, 'GET', `/burano/v1/environments/${id}/hibernation`)).schedule, null);
});

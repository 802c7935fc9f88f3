import { payload } from './cluster.mjs';
import { assert, call, deploy, deployShown, draft, environment, eventually, scenario, sees } from './harness.mjs';

const acts = { type: 'io.burano.test.Acts', name: 'acts', adminPassword: 'former secret' };

/** Deploys the package with actions and waits for the end. */
async function deployed(request) {
  const made = await deploy(request, acts);
  await eventually(() => call(request, 'GET', `/v1/environments/${made.environment}`), (now) => now.status === 'ready', 'the deployment');
  const [component] = await call(request, 'GET', `/v1/environments/${made.environment}/services`);
  return { ...made, component };
}

scenario('the form of an action has its choices, limits and defaults, and says what is interrupted', {}, async (page) => {
  const { environment: id, component } = await deployed(page.context().request);
  await page.goto(`environments/${id}/components/${component['?'].id}`);
  await page.getByRole('button', { name: /^Actions/ }).click();
  await page.getByRole('menuitem', { name: 'Resize' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('What runs is interrupted.').waitFor();
  assert.equal(await dialog.getByLabel('count').inputValue(), '2');
  await dialog.getByRole('button', { name: 'Run' }).click();
  await dialog.getByText('It must be there.').waitFor();
  await dialog.getByLabel('Size of servers').selectOption('large');
  await dialog.getByLabel('count').fill('0');
  await dialog.getByText('It is too small.').waitFor();
  await dialog.getByLabel('count').fill('3');
  await dialog.getByRole('button', { name: 'Run' }).click();
  await dialog.getByText('3 of large').waitFor();
});

scenario('an action that takes objects is offered those of the environment that are of their class', {}, async (page) => {
  const { environment: id, component } = await deployed(page.context().request);
  await page.goto(`environments/${id}/components/${component['?'].id}`);
  await page.getByRole('button', { name: /^Actions/ }).click();
  await page.getByRole('menuitem', { name: 'Greet' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Whom').selectOption('acts (Acts)');
  await dialog.getByRole('checkbox', { name: 'acts (Acts)' }).check();
  await dialog.getByRole('button', { name: 'Run' }).click();
  await dialog.getByText('Hello acts, and 1 more').waitFor();
});

scenario('a draft begun elsewhere is taken up, and shows what each property was and would be', {}, async (page) => {
  const { request } = page.context();
  const { environment: id, component } = await deployed(request);
  const session = (await call(request, 'POST', `/v1/environments/${id}/configure`)).id;
  const changed = { ...component, size: 5, adminPassword: 'another secret' };
  await call(request, 'PUT', `/v1/environments/${id}/services`, [changed], { headers: { 'X-Configuration-Session': session } });
  await page.goto(`environments/${id}`);
  await sees(page, 'There is another draft of this environment');
  await page.getByRole('button', { name: 'Who holds them' }).click();
  await page.getByRole('button', { name: 'Go on with it' }).click();
  await sees(page, 'Your draft has changes that are not deployed');
  await page.getByRole('button', { name: 'The change' }).click();
  await page.locator('del', { hasText: '1' }).waitFor();
  await page.locator('ins', { hasText: '5' }).waitFor();
  await sees(page, 'adminPassword: another secret');
  assert.equal(await page.getByText('former secret').count(), 0);

  // Another draft is deployed meanwhile.
  const other = await draft(request, id);
  await call(request, 'POST', `/v1/environments/${id}/sessions/${other}/deploy`);
  await eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', 'the other deployment');
  await page.reload();
  await sees(page, 'Your draft is out of date');
});

scenario('a draft shows what it changes in Kubernetes: secrets are hidden, and what is long is folded', {}, async (page) => {
  const { request } = page.context();
  const { environment: id, component } = await deployed(request);
  const session = (await call(request, 'POST', `/v1/environments/${id}/configure`)).id;
  await call(request, 'PUT', `/v1/environments/${id}/services`, [{ ...component, size: 5 }], { headers: { 'X-Configuration-Session': session } });
  const mark = '*** SANITIZED ***';
  const web = { change: 'changed', object_id: 'r1', object: 'shop', kind: 'Deployment', namespace: 'default', name: 'web', more: 3,
    fields: [{ path: 'spec.template.spec.containers[web].image', before: 'web:1', after: 'web:2' },
      ...Array.from({ length: 9 }, (_, i) => ({ path: `spec.template.metadata.annotations.part-${i}`, before: `was ${i}`, after: `is ${i}` }))] };
  const secret = { change: 'changed', object_id: 'r1', object: 'shop', kind: 'Secret', namespace: 'default', name: 'login', more: 0, fields: [{ path: 'data.password', before: mark, after: mark }] };
  const gone = { change: 'removed', object_id: 'r1', object: 'shop', kind: 'ConfigMap', namespace: 'default', name: payload, more: 0, fields: [] };
  await page.route('**/preview', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), kubernetes: [web, secret, gone], means: ['the deployment says this besides'] } });
  });
  await page.goto(`environments/${id}`);
  await page.getByRole('button', { name: 'Who holds them' }).click();
  await page.getByRole('button', { name: 'Go on with it' }).click();
  await sees(page, 'the deployment says this besides');
  await page.getByRole('button', { name: 'The 3 changes in Kubernetes' }).click();
  await sees(page, 'Changed: Deployment default/web');
  await page.locator('del', { hasText: 'web:1' }).waitFor();
  await page.locator('ins', { hasText: 'web:2' }).waitFor();
  assert.equal(await page.getByText('part-8').count(), 0, 'what is long is folded');
  await page.getByRole('button', { name: '5 more fields' }).click();
  await page.locator('ins', { hasText: 'is 8' }).waitFor();
  await sees(page, 'and 3 more, which the server does not list');
  await page.getByRole('button', { name: 'Fewer fields' }).click();
  await page.getByText('part-8').waitFor({ state: 'detached' });
  await sees(page, 'data.password: another secret');
  assert.equal(await page.getByText(mark).count(), 0);
  await sees(page, `Removed: ConfigMap default/${payload}`);
  assert.equal(await page.locator('main img[src=x]').count(), 0);
});

scenario('a removal that opens a draft keeps its dialog until it is done, and tells why it was refused', {}, async (page) => {
  const { environment: id } = await deployed(page.context().request);
  await page.goto(`environments/${id}`);
  await page.getByRole('button', { name: 'Remove acts from the draft' }).click();
  const dialog = page.getByRole('dialog');
  // The request goes to the server later than the draft is shown, and first as one that is no patch.
  let refuse = true;
  await page.route(`**/v1/environments/${id}/model/`, async (route) => {
    await page.getByText('Your draft has changes').waitFor();
    await route.continue(refuse ? { postData: '{}' } : {});
  });
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await dialog.getByText('That did not work').waitFor();
  refuse = false;
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await dialog.waitFor({ state: 'detached' });
  await sees(page, 'Your draft has changes that are not deployed');
});

scenario('a component is edited in the draft: what was not changed stays as it was, and a secret is kept unseen', {}, async (page) => {
  const { request } = page.context();
  const { environment: id, component } = await deployed(request);
  const here = `environments/${id}/components/${component['?'].id}`;
  const edited = async (size) => {
    await page.goto(here);
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const dialog = page.getByRole('dialog');
    const field = dialog.getByLabel('size');
    await field.waitFor();
    const before = await field.inputValue();
    assert.equal(await dialog.getByLabel('adminPassword').inputValue(), '');
    await field.fill(size);
    await dialog.getByRole('button', { name: 'Save in the draft' }).click();
    return { dialog, before };
  };
  const refused = await edited('1.5');
  assert.equal(refused.before, '1');
  await refused.dialog.getByText('It must be a whole number.').waitFor();
  const saved = await edited('5');
  await saved.dialog.waitFor({ state: 'detached' });
  await page.goto(`environments/${id}`);
  await sees(page, 'Your draft has changes that are not deployed');
  await page.getByRole('button', { name: 'The change' }).click();
  await page.locator('ins', { hasText: '5' }).waitFor();
  const again = await edited('6');
  assert.equal(again.before, '5', 'the draft is what is edited');
  await again.dialog.waitFor({ state: 'detached' });

  const [{ id: session }] = (await call(request, 'GET', `/burano/v1/environments/${id}/sessions`)).sessions;
  const [after] = await call(request, 'GET', `/v1/environments/${id}/services`, undefined, { headers: { 'X-Configuration-Session': session } });
  assert.deepEqual([after.size, after.adminPassword, after.name], [6, 'former secret', 'acts']);
});

scenario('what a component reported in all runs is one list', { thorough: true }, async (page) => {
  const { request } = page.context();
  const { environment: id, component } = await deployed(request);
  const again = await draft(request, id);
  await call(request, 'POST', `/v1/environments/${id}/sessions/${again}/deploy`);
  await eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', 'the second deployment');
  await page.goto(`environments/${id}/components/${component['?'].id}?tab=log`);
  await eventually(() => page.getByText('acts is there').count(), (count) => count === 2, 'the reports of both runs');
  assert.equal(await page.getByRole('heading', { name: /^Run of/ }).count(), 2);
});

scenario('the catalog asks for no logo and no form that is not there', { thorough: true }, async (page) => {
  const missing = [];
  page.on('response', (response) => {
    if (response.status() === 404) missing.push(response.url());
  });
  const id = await environment(page.context().request);
  await page.goto('catalog');
  await sees(page, 'Acts');
  const { packages } = await call(page.context().request, 'GET', '/burano/v1/packages?fqn=io.burano.test.Acts');
  assert.deepEqual([packages[0].version, packages[0].has_ui, packages[0].has_logo], ['1.2.0', false, false]);
  await page.goto(`catalog/${packages[0].id}`);
  await sees(page, '1.2.0');
  await page.goto(`environments/${id}/add/${packages[0].id}`);
  await sees(page, 'adminPassword');
  assert.deepEqual(missing, []);
});

scenario('a former state comes back as a draft with its preview, and two states are compared', {}, async (page) => {
  const { request } = page.context();
  const { environment: id, component } = await deployed(request);
  const ready = (what) => eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', what);
  const session = (await call(request, 'POST', `/v1/environments/${id}/configure`)).id;
  await call(request, 'PUT', `/v1/environments/${id}/services`, [{ ...component, size: 5, adminPassword: 'another secret' }], { headers: { 'X-Configuration-Session': session } });
  await call(request, 'POST', `/v1/environments/${id}/sessions/${session}/deploy`);
  await ready('the second deployment');

  await page.goto(`environments/${id}?tab=past`);
  await page.getByRole('button', { name: 'The change' }).click();
  await page.locator('ins', { hasText: '5' }).waitFor();
  await sees(page, 'adminPassword: another secret');
  assert.equal(await page.getByText('former secret').count(), 0);
  const first = page.getByRole('row', { name: /^1 / });
  await first.getByRole('button').click();
  await page.getByRole('menuitem', { name: 'Back to this one' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Secrets as they were then').check();
  await dialog.getByRole('button', { name: 'Make it my draft' }).click();
  await sees(page, 'Your draft has changes that are not deployed');
  await page.getByRole('button', { name: 'The change' }).click();
  await page.locator('del', { hasText: '5' }).waitFor();
  await deployShown(page);
  await ready('the way back');
  const [now] = await call(request, 'GET', `/v1/environments/${id}/services`);
  assert.equal(now.size, component.size);
  assert.equal(now.adminPassword, 'former secret');
  await page.goto(`environments/${id}?tab=past`);
  await sees(page, 'Back to state 1');
});

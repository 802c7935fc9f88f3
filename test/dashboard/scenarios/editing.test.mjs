import { axe, blemishes } from './axe.mjs';
import { addressOf, box, choose, list, next, through } from './form.mjs';
import { assert, call, deployShown, draft, environment, eventually, scenario, sees } from './harness.mjs';

const services = (request, id, session) =>
  call(request, 'GET', `/v1/environments/${id}/services`, undefined, { headers: session ? { 'X-Configuration-Session': session } : {} });

const ready = (request, id) => eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', 'the deployment');

/** Opens the dialog that edits the component on the page. */
async function edit(page) {
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Save in the draft' }).waitFor();
  return dialog;
}

scenario('a component is edited by the form that made it, with the values of today', {}, async (page) => {
  await page.addInitScript(axe);
  const { request } = page.context();
  const id = await environment(request);
  await page.goto(await addressOf(request, id, 'io.burano.test.Hello'));
  await box(page, 'Application name').fill('hello');
  await box(page, 'Greeting').fill('Good morning');
  await box(page, 'Times').fill('3');
  await through(page);
  await deployShown(page);
  const [made] = (await ready(request, id)).services;
  await page.goto(`environments/${id}/components/${made['?'].id}`);
  await page.getByRole('heading', { name: 'Chosen in the form' }).waitFor();
  await sees(page, 'Good morning');
  assert.equal(await page.getByText('greeting', { exact: true }).isVisible().catch(() => false), false, 'names of properties are folded');
  assert.deepEqual(await blemishes(page), []);
  const dialog = await edit(page);
  assert.equal(await box(dialog, 'Greeting').inputValue(), 'Good morning');
  assert.equal(await box(dialog, 'Times').inputValue(), '3');
  assert.equal(await box(dialog, 'Application name').inputValue(), 'hello');
  assert.deepEqual(await blemishes(page), []);
  const save = dialog.getByRole('button', { name: 'Save in the draft' });
  assert.ok(await save.isDisabled(), 'nothing is changed');
  await box(dialog, 'Greeting').fill('good evening');
  await save.click();
  await sees(page, 'It begins with a capital letter');
  await box(dialog, 'Greeting').fill('Good evening');
  await dialog.getByText('It begins with a capital letter').waitFor({ state: 'detached' });
  await save.click();
  await dialog.waitFor({ state: 'detached' });
  await sees(page, 'Good evening');
  await page.goto(`environments/${id}`);
  await page.getByRole('button', { name: 'The change' }).click();
  await page.locator('ins', { hasText: 'Good evening' }).waitFor();
  await deployShown(page);
  const now = await eventually(() => services(request, id), ([one]) => one.greeting === 'Good evening', 'the edit');
  assert.deepEqual([now[0].times, now[0]['?'].id], [3, made['?'].id]);
});

scenario('a component that the API made is edited by its form, too, and what was changed otherwise stays', {}, async (page) => {
  const { request } = page.context();
  const id = await environment(request);
  const session = await draft(request, id, { type: 'io.burano.test.Hello', greeting: 'Hello', times: 5, pause: 1 });
  await call(request, 'POST', `/v1/environments/${id}/sessions/${session}/deploy`);
  const [made] = (await ready(request, id)).services;
  await page.goto(`environments/${id}/components/${made['?'].id}`);
  const dialog = await edit(page);
  assert.equal(await box(dialog, 'Times').inputValue(), '5');
  await box(dialog, 'Times').fill('6');
  await dialog.getByRole('button', { name: 'Save in the draft' }).click();
  await dialog.waitFor({ state: 'detached' });
  const key = await page.evaluate((wanted) => localStorage.getItem(Object.keys(localStorage).find((one) => one.startsWith('burano.draft.') && one.endsWith(wanted))), id);
  const [drafted] = await services(request, id, key);
  assert.deepEqual([drafted.times, drafted.pause, drafted.greeting], [6, 1, 'Hello']);
  // Another client changes a property in the same draft.
  await call(request, 'PUT', `/v1/environments/${id}/services/${made['?'].id}/pause`, 4, { headers: { 'X-Configuration-Session': key } });
  await page.reload();
  const again = await edit(page);
  assert.equal(await box(again, 'Pause').inputValue(), '4');
  await box(again, 'Greeting').fill('Hi');
  await again.getByRole('button', { name: 'Save in the draft' }).click();
  await again.waitFor({ state: 'detached' });
  const [last] = await services(request, id, key);
  assert.deepEqual([last.times, last.pause, last.greeting], [6, 4, 'Hi']);
});

scenario('a cluster is edited by its form: what follows from an answer changes, other properties are under Advanced', {}, async (page) => {
  await page.addInitScript(axe);
  const { request } = page.context();
  const id = await environment(request);
  await page.goto(await addressOf(request, id, 'com.mirantis.docker.kubernetes.KubernetesCluster'));
  await box(page, 'Cluster name').fill('cluster');
  await choose(list(page, 'Version of Kubernetes'));
  await choose(list(page, 'Flavor of the nodes'));
  await choose(list(page, 'Availability zone'));
  await next(page);
  await page.getByRole('button', { name: 'Volumes', exact: true }).click();
  await choose(list(page, 'Volumes for claims'), 'Directories');
  await through(page);
  await sees(page, /Your draft (has changes that are not deployed|cannot be deployed)/);
  const key = await page.evaluate((wanted) => localStorage.getItem(Object.keys(localStorage).find((one) => one.startsWith('burano.draft.') && one.endsWith(wanted))), id);
  const [made] = await services(request, id, key);
  await page.goto(`environments/${id}/components/${made['?'].id}`);
  await page.getByRole('heading', { name: 'Chosen in the form' }).waitFor();
  await sees(page, 'Directories of the nodes');
  assert.equal(await page.getByText('Nothing', { exact: true }).count(), 0, 'no row is empty');
  const dialog = await edit(page);
  await box(dialog, 'Number of nodes').fill('3');
  await dialog.getByRole('button', { name: /^Host names/ }).click();
  await box(dialog, 'Kubernetes node hostname pattern').fill('shop-#');
  await dialog.getByRole('button', { name: 'Advanced' }).click();
  await dialog.getByText('Properties of the class that the form does not set.').waitFor();
  await dialog.getByText(/A change is made like this: in place\. Members of etcd join and leave/).waitFor();
  assert.deepEqual(await blemishes(page), []);
  await dialog.getByRole('button', { name: 'Save in the draft' }).click();
  const [now] = await eventually(() => services(request, id, key), ([one]) => one.nodeCount === 3, 'the edit');
  const ids = (cluster) => cluster.minionNodes.map((node) => [node['?'].id, node.instance['?'].id]);
  assert.deepEqual(ids(now), ids(made), 'the nodes are the same');
  assert.deepEqual(now.minionNodes.map((node) => node.instance.name), ['shop-2', 'shop-3', 'shop-4']);
  assert.deepEqual(now.storageClasses, made.storageClasses);
});

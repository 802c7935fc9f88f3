import { addressOf, box, choose, list, next, through } from './form.mjs';
import { assert, call, deployShown, environment, eventually, fresh, scenario, sees } from './harness.mjs';

/** What is in the draft that the browser remembers. */
async function services(page, id) {
  const session = await page.evaluate((wanted) => {
    const key = Object.keys(localStorage).find((one) => one.startsWith('burano.draft.') && one.endsWith(wanted));
    return key ? localStorage.getItem(key) : '';
  }, id);
  return call(page.context().request, 'GET', `/v1/environments/${id}/services`, undefined, { headers: { 'X-Configuration-Session': session } });
}

scenario('an application is found in the catalog, added to a new environment and deployed', {}, async (page) => {
  const name = fresh('from the catalog');
  await page.goto('catalog');
  await page.getByRole('link', { name: 'Hello', exact: true }).click();
  await page.getByRole('button', { name: 'Add to environment' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('radio', { name: 'A new environment' }).check();
  await dialog.getByRole('textbox', { name: 'Name of the new environment' }).fill(name);
  await dialog.getByRole('button', { name: 'Next' }).click();
  await box(page, 'Greeting').waitFor();
  await through(page);
  await sees(page, 'Your draft has changes that are not deployed');
  const made = new URL(page.url()).pathname.split('/').at(-1);
  const networks = await call(page.context().request, 'GET', `/v1/environments/${made}/model/defaultNetworks`);
  assert.equal(networks.environment?.name, `${name}-network`, 'it has a network of its own');
  await deployShown(page);
  await sees(page, 'Hello 2');
  await page.getByRole('status').filter({ hasText: 'Successful' }).first().waitFor();
  await page.getByRole('button', { name: 'See the components' }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
});

scenario('a value that its field does not take is refused with the words of the form, and the next step is not shown', {}, async (page) => {
  const { request } = page.context();
  await page.goto(await addressOf(request, await environment(request), 'io.burano.test.Hello'));
  await box(page, 'Application name').fill('hello');
  await box(page, 'Greeting').fill('small');
  await box(page, 'Times').fill('0');
  await next(page);
  await sees(page, 'It begins with a capital letter');
  assert.ok(await box(page, 'Greeting').isVisible());
});

scenario('what is filled in stays when the page is loaded again', {}, async (page) => {
  const { request } = page.context();
  await page.goto(await addressOf(request, await environment(request), 'io.burano.test.Hello'));
  await box(page, 'Greeting').fill('Good morning');
  await box(page, 'Times').fill('7');
  await page.reload();
  await box(page, 'Greeting').waitFor();
  assert.equal(await box(page, 'Greeting').inputValue(), 'Good morning');
  assert.equal(await box(page, 'Times').inputValue(), '7');
});

scenario('a field of every type is filled in, and what a field refers to is added in the middle', { thorough: true }, async (page) => {
  const { request } = page.context();
  const id = await environment(request);
  await page.goto(await addressOf(request, id, 'io.burano.test.Fields'));
  await box(page, 'Application name').fill('fields');
  await box(page, 'A string').fill('words');
  await box(page, 'A text').fill('several\nlines');
  await page.getByRole('checkbox', { name: 'A boolean' }).press(' ');
  await box(page, 'An integer').fill('4');
  const secrets = page.locator('input[type="password"]');
  await secrets.nth(0).fill('Secret-word-1');
  if ((await secrets.count()) > 1) await secrets.nth(1).fill('Secret-word-1');
  await list(page, 'A choice').selectOption({ label: 'The second' });
  await box(page, 'Databases').fill('one, two');
  await next(page);
  await choose(list(page, 'A flavor'));
  await choose(list(page, 'A zone'));
  await next(page);
  await page.getByRole('button', { name: 'Add new: A greeting' }).click();
  const nested = page.getByRole('dialog');
  await box(nested, 'Application name').fill('nested');
  await box(nested, 'Greeting').fill('Nested');
  const add = nested.getByRole('button', { name: /^Add( to environment)?$/ });
  await eventually(
    async () => {
      if (!(await add.isVisible())) await nested.getByRole('button', { name: 'Next', exact: true }).click();
      return add.isVisible();
    },
    Boolean,
    'the end of the wizard inside',
  );
  await add.click();
  await nested.waitFor({ state: 'detached' });
  await through(page);
  await sees(page, 'Your draft has changes that are not deployed');
  const added = await eventually(() => services(page, id), (now) => now.length === 2, 'the draft');
  const fields = added.find((one) => one['?'].type.startsWith('io.burano.test.Fields'));
  assert.equal(fields.filled.aString, 'words');
  assert.equal(fields.filled.aText, 'several\nlines');
  assert.equal(fields.filled.aBoolean, true);
  assert.equal(fields.filled.anInteger, 4);
  assert.equal(fields.filled.aChoice, 'two');
});

scenario('a cluster, a pod on it and a container in that are added one after another', {}, async (page) => {
  const draft = /Your draft (has changes that are not deployed|cannot be deployed)/; // the node image of these scenarios serves no volumes
  const { request } = page.context();
  const id = await environment(request);
  await page.goto(await addressOf(request, id, 'com.mirantis.docker.kubernetes.KubernetesCluster'));
  await box(page, 'Cluster name').fill('cluster');
  assert.equal(await page.getByText(/Murano/).count(), 0, 'no text is left over');
  await choose(list(page, 'Version of Kubernetes'));
  await choose(list(page, 'Flavor of the nodes'));
  await choose(list(page, 'Availability zone'));
  for (const name of ['Number of nodes', 'Number of gateways']) await page.getByLabel(new RegExp(`^${name}`)).first().waitFor();
  assert.equal(await page.getByLabel(/^Maximum number of nodes/).isVisible(), false, 'what is seldom changed is folded');
  await next(page);
  await page.getByRole('textbox', { name: 'Who may reach the gateways', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Volumes', exact: true }).click();
  await choose(list(page, 'Volumes for claims'), 'Directories');
  await page.getByRole('button', { name: 'Volumes (1 changed)' }).waitFor();
  await page.getByRole('button', { name: 'Network of pods and Services' }).click();
  await box(page, 'Addresses of pods').fill('no range');
  await page.getByRole('button', { name: /^Network of pods and Services/ }).click();
  await next(page);
  await sees(page, 'A range of addresses such as 10.244.0.0/16 or fd00:10:244::/64');
  await box(page, 'Addresses of pods').fill('172.20.0.0/16');
  await next(page);
  await box(page, 'Name of the group').fill('workers');
  await box(page, 'Labels of the group').fill('disk=fast');
  await next(page);
  const review = (name) => page.locator('.burano-review').filter({ has: page.getByRole('heading', { name }) });
  await review('Nodes configuration').getByText('Node', { exact: true }).waitFor(); // the image by its title
  await review('Kube net configuration').getByText('Directories of the nodes').waitFor();
  await review('Kube net configuration').getByText('172.20.0.0/16').waitFor();
  assert.equal(await page.getByText('Domain of the cluster').isVisible(), false, 'a value as suggested is folded');
  await review('Kube net configuration').getByRole('button', { name: /more values, as suggested$/ }).click();
  await sees(page, 'Domain of the cluster');
  await through(page);
  await sees(page, draft);
  const [cluster] = await eventually(() => services(page, id), (now) => now.length === 1, 'the draft');
  assert.deepEqual(cluster.minionGroups.map(({ name, count, labels }) => ({ name, count, labels })), [{ name: 'workers', count: 1, labels: { disk: 'fast' } }]);

  await page.goto(await addressOf(request, id, 'com.mirantis.docker.kubernetes.KubernetesPod'));
  await box(page, 'Pod name').fill('pod');
  await choose(list(page, 'Kubernetes cluster'));
  await next(page);
  await box(page, 'Labels of nodes').fill('disk=fast');
  await box(page, 'Group of the volumes').fill('1000');
  await through(page);
  await sees(page, draft);

  const [, pod] = await eventually(() => services(page, id), (now) => now.length === 2, 'the draft');
  assert.deepEqual([pod.nodeSelector, pod.securityContext], [{ disk: 'fast' }, { fsGroup: 1000 }]);

  await page.goto(await addressOf(request, id, 'com.example.docker.DockerApp'));
  await box(page, 'Image').fill('registry.example.org/web:1');
  await choose(list(page, 'Container host'));
  await through(page);
  await sees(page, draft);
  await eventually(() => services(page, id), (now) => now.length === 3, 'the draft');
});

scenario('signing in and adding an application need no mouse', { user: null }, async (page) => {
  const { request } = page.context();
  await call(request, 'POST', '/burano/v1/session', { user: 'demo', password: 'demo' });
  const address = await addressOf(request, await environment(request), 'io.burano.test.Hello');
  await call(request, 'DELETE', '/burano/v1/session', undefined, { status: 204 });
  await page.goto(address);
  await page.locator('#signin-user').waitFor();
  await tabTo(page, '#signin-user');
  await page.keyboard.type('demo');
  await tabTo(page, '#signin-password');
  await page.keyboard.type('demo');
  await page.keyboard.press('Enter');
  await box(page, 'Greeting').waitFor();
  await tabTo(page, box(page, 'Application name'));
  await page.keyboard.type('keys');
  await tabTo(page, box(page, 'Greeting'));
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('Keys');
  await page.keyboard.press('Enter');
  for (;;) {
    const add = page.getByRole('button', { name: 'Add to environment' });
    const onward = page.getByRole('button', { name: 'Next', exact: true });
    await page.waitForURL(/step=/);
    const before = page.url();
    if (await add.isVisible()) {
      await tabTo(page, add);
      await page.keyboard.press('Enter');
      break;
    }
    await tabTo(page, onward);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.href !== before);
  }
  await sees(page, 'Your draft has changes that are not deployed');
});

/** Presses the tabulator until what is wanted has the focus. */
async function tabTo(page, wanted) {
  const target = typeof wanted === 'string' ? page.locator(wanted) : wanted;
  for (let i = 0; i < 100; i++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`the tabulator does not reach ${target}`);
}

scenario('a draft that somebody else has overtaken says that it is out of date', {}, async (page) => {
  const { request } = page.context();
  const id = await environment(request);
  await page.goto(await addressOf(request, id, 'io.burano.test.Hello'));
  await box(page, 'Greeting').waitFor();
  await through(page);
  await sees(page, 'Your draft has changes that are not deployed');
  const other = (await call(request, 'POST', `/v1/environments/${id}/configure`)).id;
  await call(request, 'POST', `/v1/environments/${id}/services`, { '?': { type: 'io.burano.test.Hello', id: crypto.randomUUID().replaceAll('-', '') }, name: 'x', greeting: 'Hi' }, { headers: { 'X-Configuration-Session': other } });
  await call(request, 'POST', `/v1/environments/${id}/sessions/${other}/deploy`);
  await eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', 'the deployment');
  await page.reload();
  await sees(page, 'Your draft is out of date');
});

scenario('a button is pressed right after leaving a field that is wrong, although what is wrong appears above it', { thorough: true }, async (page) => {
  const { request } = page.context();
  const id = await environment(request);
  await page.goto(await addressOf(request, id, 'io.burano.test.Hello'));
  await box(page, 'Greeting').fill('small');
  await page.waitForResponse((answer) => answer.url().includes('/forms/') && answer.request().method() === 'POST');
  const button = await page.getByRole('button', { name: 'Cancel' }).boundingBox();
  await page.mouse.click(button.x + button.width / 2, button.y + 3, { delay: 120 });
  await page.waitForURL(new RegExp(`/environments/${id}$`), { timeout: 10_000 });
});

scenario('an application has a name to begin with, and another one of its kind another name', { thorough: true }, async (page) => {
  const { request } = page.context();
  const id = await environment(request);
  const address = await addressOf(request, id, 'io.burano.test.Hello');
  await page.goto(address);
  await box(page, 'Application name').waitFor();
  assert.equal(await box(page, 'Application name').inputValue(), 'Hello');
  await box(page, 'Greeting').fill('Good morning');
  await through(page);
  await sees(page, 'Your draft has changes that are not deployed');
  await page.goto(address);
  await box(page, 'Application name').waitFor();
  assert.equal(await box(page, 'Application name').inputValue(), 'Hello 2');
});

// The plan that a user sees before a deployment or a deletion, the consents that it asks for, and what becomes of an edit that is refused.
import { assert, call, deploy, deployShown, draft, environment, eventually, fresh, patience, scenario, sees } from './harness.mjs';

const acts = (name) => ({ type: 'io.burano.test.Acts', name });

const ready = (request, id) => eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => now.status === 'ready', 'the deployment');

const successful = (page) => page.getByRole('status').filter({ hasText: 'Successful' }).first().waitFor();

const services = (request, id) => call(request, 'GET', `/v1/environments/${id}/services`);

const editing = (session) => ({ headers: { 'X-Configuration-Session': session } });

const button = (within, name) => within.getByRole('button', { name, exact: true });

scenario('a deployment does nothing that its dialog did not show: when the plan changes meanwhile, the dialog says so and shows the new one', {}, async (page) => {
  const { request } = page.context();
  const { environment: id } = await deploy(request, acts('stays'), acts('first'), acts('second'));
  await ready(request, id);
  await page.goto(`environments/${id}`);
  await button(page, 'Remove first from the draft').click();
  await button(page.getByRole('dialog'), 'Remove').click();
  await sees(page, 'Applications: 0 added, 0 changed, 1 removed.');

  await button(page, 'Deploy').click();
  const dialog = page.getByRole('dialog');
  await sees(dialog, 'Removed: first (io.burano.test.Acts)');
  const [{ id: session }] = (await call(request, 'GET', `/burano/v1/environments/${id}/sessions`)).sessions;
  const second = (await services(request, id)).find((one) => one.name === 'second');
  await call(request, 'DELETE', `/v1/environments/${id}/services/${second['?'].id}`, undefined, editing(session));
  await button(dialog, 'Deploy').click();
  await sees(dialog, 'The plan has changed since it was shown. Nothing was deployed.');
  await sees(dialog, /The deployment does more than was shown, since something has changed: second \(io\.burano\.test\.Acts\) is removed/);
  await sees(dialog, 'Applications: 0 added, 0 changed, 2 removed.');
  await sees(dialog, 'Removed: second (io.burano.test.Acts)');
  assert.equal((await services(request, id)).length, 3, 'nothing was deployed');

  await button(dialog, 'Deploy').click();
  await successful(page);
  assert.deepEqual((await services(request, id)).map((one) => one.name), ['stays']);
});

scenario('a dialog that is closed leaves no draft behind, and an environment without one is deployed again', {}, async (page) => {
  const { request } = page.context();
  const { environment: id } = await deploy(request, acts('stays'));
  await ready(request, id);
  const drafts = async () => (await call(request, 'GET', `/burano/v1/environments/${id}/sessions`)).sessions.length;
  await page.goto(`environments/${id}`);
  await button(page, 'Deploy').click();
  const dialog = page.getByRole('dialog');
  await sees(dialog, 'It differs in nothing from what is deployed.');
  assert.equal(await drafts(), 1);
  await button(dialog, 'Cancel').click();
  await eventually(drafts, (count) => count === 0, 'the draft of the dialog');
  await deployShown(page);
  await successful(page);
});

scenario('a deployment that loses a cluster wants consent to that, and of several deployments at once it is left out', { limit: 6 * patience }, async (page) => {
  const { request } = page.context();
  const { id, name, cluster } = await withCluster(request);
  const lost = new RegExp(`cluster kube \\(${cluster['?'].id}\\) is destroyed, with everything that is in it`);
  await page.goto(`environments/${id}`);
  await button(page, 'Remove kube from the draft').click();
  await button(page.getByRole('dialog'), 'Remove').click();
  await sees(page, lost);

  // Of several environments those are left out that lose something.
  await page.goto('environments');
  await page.getByRole('textbox', { name: 'Filter by name' }).fill(name);
  await page.getByRole('checkbox', { name: `Choose ${name}` }).check();
  await deployShown(page);
  await sees(page, `${name}: Nothing was done: its deployment does more than add and change.`);

  await page.goto(`environments/${id}`);
  await button(page, 'Deploy').click();
  const dialog = page.getByRole('dialog');
  await sees(dialog, 'Removed: kube (com.mirantis.docker.kubernetes.KubernetesCluster)');
  const consent = dialog.getByRole('checkbox', { name: lost });
  await consent.waitFor();
  assert.equal(await button(dialog, 'Deploy').isDisabled(), true);
  await consent.check();
  assert.equal(await button(dialog, 'Deploy').isDisabled(), false);
  await consent.uncheck();
  assert.equal(await button(dialog, 'Deploy').isDisabled(), true);
  await consent.check();
  const asked = page.waitForRequest((one) => one.method() === 'POST' && one.url().includes('/deploy'));
  await button(dialog, 'Deploy').click();
  const { searchParams } = new URL((await asked).url());
  assert.deepEqual(searchParams.getAll('allow_destroy'), [cluster['?'].id]);
  assert.match(searchParams.get('plan'), /^\d+:[0-9a-f]/);
  await successful(page);
  assert.deepEqual(await services(request, id), []);
});

scenario('the deletion of an environment with a cluster lists what goes and what stays, and wants consent', { limit: 6 * patience }, async (page) => {
  const { request } = page.context();
  const { id, name, cluster } = await withCluster(request);
  await page.goto('environments');
  const row = page.getByRole('row').filter({ hasText: name });
  await row.getByRole('checkbox').check();
  await button(page, 'Delete').first().click();
  const dialog = page.getByRole('dialog');
  const consent = dialog.getByRole('checkbox', { name: new RegExp(`cluster kube \\(${cluster['?'].id}\\) is destroyed`) });
  await consent.waitFor();
  await sees(dialog, 'This is deleted, with everything in it:');
  await sees(dialog, /^server kube-1 \(.*\) with its disk$/);
  await sees(dialog, 'are kept for 7 days: burano environment undelete restores it.');
  assert.equal(await button(dialog, 'Delete').isDisabled(), true);
  await button(dialog, 'Cancel').click();

  await page.goto(`environments/${id}`);
  await button(page, 'Delete').click();
  assert.equal(await button(dialog, 'Delete').isDisabled(), true);
  await consent.check();
  await button(dialog, 'Delete').click();
  await page.getByRole('heading', { level: 1, name: 'Environments' }).waitFor();
  await row.waitFor({ state: 'detached' });
});

scenario('an environment in which a task runs is not deleted: the dialog says who works since when, and waits', {}, async (page) => {
  const { request } = page.context();
  const { environment: id, deployment } = await deploy(request, { type: 'io.burano.test.Loops' });
  await page.goto(`environments/${id}`);
  await button(page, 'Delete').click();
  const dialog = page.getByRole('dialog');
  await sees(dialog, 'The environment is busy, and cannot be deleted now');
  await sees(dialog, /A task of demo runs since/);
  assert.equal(await button(dialog, 'Delete').isDisabled(), true);
  await call(request, 'POST', `/burano/v1/deployments/${deployment}/cancel`, undefined, { status: 202 });
  await dialog.getByText('The environment is busy').waitFor({ state: 'detached' });
  await button(dialog, 'Delete').click();
  await page.getByRole('heading', { level: 1, name: 'Environments' }).waitFor();
});

scenario('an edit that was refused stays as a draft: it is corrected and deployed, or discarded', {}, async (page) => {
  const { request } = page.context();
  const { environment: id } = await deploy(request, { type: 'io.burano.test.Acts', name: 'acts', size: 1 });
  await ready(request, id);
  const [component] = await services(request, id);
  const refuse = async () => {
    const session = await draft(request, id);
    await call(request, 'PUT', `/v1/environments/${id}/services`, [{ ...component, size: 'many' }], editing(session));
    await call(request, 'POST', `/v1/environments/${id}/sessions/${session}/deploy`);
    await eventually(
      () => call(request, 'GET', `/burano/v1/environments/${id}/sessions`),
      ({ sessions }) => sessions.some((one) => one.id === session && one.rejected),
      'the refusal',
    );
  };
  const size = async () => (await services(request, id))[0].size;

  await refuse();
  await page.goto(`environments/${id}`);
  await sees(page, 'Your last edit was refused');
  await sees(page, /^acts: size: /);
  await button(page, 'Correct it').click();
  await sees(page, 'Your draft cannot be deployed: one problem');
  await sees(page, 'Its last deployment was refused, and changed nothing.');
  await button(page, 'Deploy').click();
  await sees(page.getByRole('dialog'), 'Your draft cannot be deployed: one problem');
  assert.equal(await button(page.getByRole('dialog'), 'Deploy').isDisabled(), true);
  await button(page.getByRole('dialog'), 'Cancel').click();
  await page.goto(`environments/${id}/components/${component['?'].id}`);
  await button(page, 'Edit').click();
  await page.getByRole('dialog').getByLabel('size').fill('4');
  await button(page.getByRole('dialog'), 'Save in the draft').click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.goto(`environments/${id}`);
  await deployShown(page);
  await successful(page);
  assert.equal(await size(), 4);

  await refuse();
  await page.goto(`environments/${id}`);
  await sees(page, 'Your last edit was refused');
  await button(page, 'Discard it').click();
  const dialog = page.getByRole('dialog');
  await sees(dialog, 'What is deployed stays as it is.');
  await button(dialog, 'Discard draft').click();
  await page.getByText('Your last edit was refused').waitFor({ state: 'detached' });
  assert.deepEqual((await call(request, 'GET', `/burano/v1/environments/${id}/sessions`)).sessions, []);
  assert.equal(await size(), 4);
});

/** An environment with a cluster that began to come up: its deployment is cancelled, since the image of these scenarios has no Kubernetes. */
async function withCluster(request) {
  const ask = async (kind) => (await call(request, 'GET', `/burano/v1/cloud/${kind}`))[kind];
  const [flavor] = await ask('flavors');
  const image = (await ask('images')).find((one) => one.name === 'burano-node');
  const server = (name) => ({ '?': { type: 'io.murano.resources.LinuxMuranoInstance', id: crypto.randomUUID().replaceAll('-', '') }, name, flavor: flavor.name, image: image.id });
  const node = (type, name) => ({ '?': { type: `com.mirantis.docker.kubernetes.${type}`, id: crypto.randomUUID().replaceAll('-', '') }, instance: server(name) });
  const name = `${fresh('a cluster')} once`;
  const id = await environment(request, name);
  const session = await draft(request, id, {
    type: 'com.mirantis.docker.kubernetes.KubernetesCluster', name: 'kube', nodeCount: 1, gatewayCount: 1,
    masterNode: node('KubernetesMasterNode', 'kube-1'), minionNodes: [node('KubernetesMinionNode', 'kube-2')], gatewayNodes: [node('KubernetesGatewayNode', 'gateway-1')],
  });
  await call(request, 'POST', `/v1/environments/${id}/sessions/${session}/deploy`);
  const [{ id: deployment }] = (await call(request, 'GET', `/v1/environments/${id}/deployments`)).deployments;
  await eventually(() => call(request, 'GET', `/burano/v1/deployments/${deployment}/steps`), ({ steps }) => steps.some((one) => one.name.includes('connect')), 'the servers');
  await call(request, 'POST', `/burano/v1/deployments/${deployment}/cancel`, undefined, { status: 202 });
  await eventually(() => call(request, 'GET', `/v1/environments/${id}`), (now) => !['deploying', 'pending'].includes(now.status), 'the end of the deployment');
  const [cluster] = await services(request, id);
  return { id, name, cluster };
}

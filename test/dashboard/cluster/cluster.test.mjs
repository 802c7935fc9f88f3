// The whole way of somebody who has a browser and nothing else: from the sign-in to an application on a real cluster that answers, and back.
import { stat } from 'node:fs/promises';
import { get } from 'node:http';
import { basename } from 'node:path';

import { archiveOf } from '../scenarios/archive.mjs';
import { axe, barriers } from '../scenarios/axe.mjs';
import { box, choose, list, next, through } from '../scenarios/form.mjs';
import { assert, call, calm, deployShown, eventually, scenario, sees } from '../scenarios/harness.mjs';

const minutes = 60_000;

const status = (page, words, timeout) => page.getByRole('status').filter({ hasText: words }).first().waitFor({ timeout });

scenario('a cluster and an application on it are made, used, made larger and deleted', { user: null, limit: 12 * minutes }, async (page, t) => {
  const began = Date.now();
  const say = (what) => t.diagnostic(`${((Date.now() - began) / 1000).toFixed(0).padStart(4)} s  ${what}`);

  // Pictures for documents, into the folder that BURANO_PICTURES names.
  const picture = async (name) => {
    if (!process.env.BURANO_PICTURES) return;
    await calm(page);
    await page.screenshot({ path: `${process.env.BURANO_PICTURES}/${name}.png`, animations: 'disabled' });
  };
  await page.addInitScript(axe);
  await page.goto('');
  await page.getByRole('textbox', { name: 'User' }).fill('demo');
  await page.locator('#signin-password').fill('demo');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Catalog' }).waitFor();

  await page.getByRole('link', { name: 'Packages', exact: true }).click();
  await page.getByRole('button', { name: 'Import packages' }).first().click();
  const folder = process.env.BURANO_HELLO;
  await page.getByRole('dialog').locator('input[type="file"]').setInputFiles({ name: `${basename(folder)}.zip`, mimeType: 'application/zip', buffer: archiveOf(folder) });
  await page.getByRole('dialog').getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('row').filter({ hasText: 'io.burano.demo.Hello' }).first().waitFor();
  say('the package is imported');

  await page.getByRole('link', { name: 'Catalog', exact: true }).click();
  await picture('catalog');
  await page.getByRole('link', { name: 'Kubernetes Cluster', exact: true }).click();
  await page.getByRole('button', { name: 'Add to environment' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('radio', { name: 'A new environment' }).check();
  await dialog.getByRole('textbox', { name: 'Name of the new environment' }).fill('by hand');
  await dialog.getByRole('button', { name: 'Next' }).click();
  await box(page, 'Cluster name').fill('cluster');
  await page.getByLabel(/^Number of nodes/).first().fill('1');
  await choose(list(page, 'Version of Kubernetes'), 'Burano node');
  await choose(list(page, 'Flavor of the nodes'), 'm1.medium');
  await choose(list(page, 'Availability zone'));
  await through(page);
  await sees(page, 'Your draft has changes that are not deployed');

  const add = async (application) => {
    await page.getByRole('button', { name: 'Add application' }).first().click();
    await page.getByRole('link', { name: application, exact: true }).click();
    await page.getByRole('button', { name: 'Add to environment' }).click();
    const which = page.getByRole('dialog').getByRole('button', { name: 'Next' });
    const form = box(page, 'Application name').or(box(page, 'Pod name'));
    await which.or(form).first().waitFor();
    if (await which.isVisible()) await which.click();
    await form.first().waitFor();
  };
  await add('Kubernetes Pod');
  await box(page, 'Pod name').fill('pod');
  await choose(list(page, 'Kubernetes cluster'));
  await through(page);
  await sees(page, 'Your draft has changes that are not deployed');
  await add('Hello');
  await choose(list(page, 'Container host'));
  await next(page);
  await page.getByRole('button', { name: 'Add to environment' }).click();
  await sees(page, 'Your draft has changes that are not deployed');
  const environment = new URL(page.url()).pathname.replace('/dashboard/', '');
  say('the draft is filled in');

  await deployShown(page);
  await page.waitForURL(/\/deployments\//);
  await status(page, 'Running');
  const steps = page.getByRole('grid', { name: 'Steps' }).getByRole('row');
  await steps.filter({ hasText: 'murano-gateway-1: connect' }).first().waitFor();
  const early = await steps.count();
  await status(page, 'Successful', 6 * minutes);
  await page.getByRole('button', { name: 'Open all' }).click();
  await steps.filter({ hasText: 'murano-gateway-1: connect' }).first().waitFor();
  assert.ok((await steps.count()) > early, 'steps come while it runs');
  say('it is deployed');
  await picture('deployment');

  await page.goto(environment);
  const link = page.getByRole('link', { name: /^Open http:/ }).first();
  const [application] = await Promise.all([page.waitForEvent('popup'), link.click()]);
  await eventually(
    async () => {
      await application.reload().catch(() => undefined);
      return application.locator('body').innerText();
    },
    (text) => /hello|demo/i.test(text),
    'what the application answers through the gateway',
  );
  const address = application.url();
  await application.close();
  say('the application answers through the gateway');
  if (process.env.BURANO_PICTURES) {
    await page.goto(`${environment}?tab=topology`);
    await page.getByRole('textbox', { name: 'Find an object' }).waitFor();
    await picture('topology');
    await page.goto(environment);
  }

  await page.getByRole('link', { name: 'cluster', exact: true }).first().click();
  await page.getByRole('button', { name: 'Nodes and routes' }).click();
  const nodes = page.getByRole('grid', { name: 'Nodes' });
  await nodes.getByRole('row').filter({ hasText: 'murano-kube-2' }).filter({ hasText: 'Ready' }).first().waitFor();
  assert.equal(await nodes.getByRole('row').filter({ hasText: 'murano-kube-3' }).count(), 0);
  await status(page, 'Healthy');
  say('nodes, members and routes are seen');
  await picture('cluster');

  // The rates move under requests, each over a connection of its own, and the bytes of the answers are counted.
  const row = page.getByRole('grid', { name: 'Routes' }).getByRole('row').filter({ hasText: new URL(address).port || '80' });
  await row.getByText('0/s', { exact: true }).waitFor();
  let asking = true;
  const requests = (async () => {
    for (; asking; ) await new Promise((done) => get(address, { agent: false }, (answer) => answer.resume().on('end', done)).on('error', done));
  })();
  await row.getByText(/^[1-9]\d*\/s$/).first().waitFor();
  await row.getByText(/^Out [1-9].*B\/s$/).waitFor();
  asking = false;
  await requests;
  await row.getByText('0/s', { exact: true }).waitFor();
  say('the rates of the gateway move under requests');

  const clear = async (what) => assert.deepEqual(await barriers(page), [], `axe on ${what}`);
  await clear('the cluster');
  const node = nodes.getByRole('row').filter({ hasText: 'murano-kube-2' });
  for (const [cordoned, then] of [['true', 'Takes no new pods'], ['false', 'Ready']]) {
    await node.getByRole('button', { name: /^Actions/ }).click();
    if (then === 'Ready') await clear("the menu of a node's actions");
    await page.getByRole('menuitem', { name: /^Change a node/ }).click();
    await dialog.getByLabel('cordoned').selectOption(cordoned);
    await dialog.locator('button[type="submit"]').click();
    await dialog.getByText('The action is done').first().waitFor({ timeout: 3 * minutes });
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await node.getByText(then, { exact: true }).waitFor();
  }
  say('a node takes no new pods for a while');
  await page.getByRole('tab', { name: 'Snapshots and certificates' }).click();
  await page.getByRole('button', { name: 'Take a snapshot' }).click();
  await dialog.getByRole('textbox', { name: 'What it is for' }).fill('by hand');
  await dialog.getByRole('button', { name: 'Take a snapshot' }).click();
  const taken = page.getByRole('grid', { name: 'Snapshots' }).getByRole('row').filter({ hasText: 'by hand' });
  await taken.waitFor();
  await page.getByRole('grid', { name: 'Certificates' }).getByRole('row').filter({ hasText: 'days left' }).first().waitFor();
  await page.getByRole('button', { name: 'Rotate certificates, keys or passwords' }).waitFor();
  await clear('snapshots and certificates');
  await taken.getByRole('button', { name: /^Actions/ }).click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Download' }).click()]);
  assert.ok((await stat(await file.path())).size > 100_000, 'a store of etcd');
  say('a snapshot is taken and downloaded, and certificates are seen');
  await page.getByRole('tab', { name: 'What runs' }).click();
  await page.getByRole('link', { name: /^coredns-/ }).first().waitFor();
  await clear('what runs');
  const cluster = page.url();
  await page.getByRole('link', { name: /^coredns-/ }).first().click();
  await page.getByText(/CoreDNS-/).first().waitFor();
  await clear('a pod');
  const pod = new URL(page.url()).pathname.split('/').at(-1);
  await page.getByRole('button', { name: 'Recreate' }).click();
  await dialog.getByRole('button', { name: 'Recreate' }).click();
  await page.getByRole('heading', { level: 1, name: 'Deployment coredns' }).waitFor();
  await page.getByRole('link', { name: pod, exact: true }).waitFor({ state: 'detached', timeout: 2 * minutes });
  await status(page, /^(\d+) of \1 pods ready$/, 2 * minutes);
  await clear('a workload');
  await page.getByRole('button', { name: 'Restart' }).click();
  await dialog.getByRole('button', { name: 'Restart' }).click();
  await dialog.waitFor({ state: 'detached' });
  await status(page, /^(\d+) of \1 pods ready$/, 2 * minutes);
  await page.goto(cluster.replace(/\?.*/, ''));
  await nodes.waitFor();
  say('what runs is seen, and the log of a pod, which is made again');

  await page.getByRole('button', { name: 'Scale', exact: true }).click();
  await dialog.getByRole('button', { name: 'One more' }).click();
  await dialog.locator('button[type="submit"]').click();
  await dialog.getByText('The action is done').first().waitFor({ timeout: 3 * minutes });
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await nodes.getByRole('row').filter({ hasText: 'murano-kube-3' }).filter({ hasText: 'Ready' }).first().waitFor();
  say('the cluster has one more node');

  // A pod with a claim. What leaves the claim without its pod wants consent, however it comes about; coming back does not.
  const { request } = page.context();
  const id = environment.split('/').at(-1);
  const session = (await call(request, 'POST', `/v1/environments/${id}/configure`)).id;
  const editing = { headers: { 'X-Configuration-Session': session } };
  const there = await call(request, 'GET', `/v1/environments/${id}/services`, undefined, editing);
  const made = there.find((one) => one.name === 'cluster');
  const header = (type) => ({ '?': { type, id: crypto.randomUUID().replaceAll('-', '') } });
  const store = { ...header('com.mirantis.docker.kubernetes.KubernetesPod'), name: 'store', kubernetesCluster: made['?'].id, replicas: 1 };
  const volume = { ...header('com.mirantis.docker.DockerPersistentVolume'), size: '10Mi' };
  const pages = { ...header('com.example.docker.DockerApp'), name: 'pages', image: 'registry.local/demo:1', host: store['?'].id, volumes: { '/data': volume } };
  await call(request, 'PUT', `/v1/environments/${id}/services/${made['?'].id}/storageClasses`, [{ name: 'burano-local', backend: 'local', default: true }], editing);
  for (const one of [store, pages]) await call(request, 'POST', `/v1/environments/${id}/services`, one, editing);
  const deployed = async (consent, end = 'Successful') => {
    await page.getByRole('button', { name: 'Deploy', exact: true }).click();
    const agree = dialog.getByRole('button', { name: 'Deploy', exact: true });
    if (consent) {
      await dialog.getByRole('checkbox', { name: consent }).waitFor();
      await clear('the plan of a deployment');
      assert.equal(await agree.isDisabled(), true);
      await dialog.getByRole('checkbox', { name: consent }).check();
    } else {
      await dialog.getByText(/^Applications: /).waitFor();
      assert.equal(await dialog.getByRole('checkbox').count(), 0);
    }
    await agree.click();
    await page.waitForURL(/\/deployments\//);
    await status(page, end, 3 * minutes);
  };
  await page.goto(environment);
  await page.getByRole('button', { name: 'Who holds them' }).click();
  await page.getByRole('button', { name: 'Go on with it' }).click();
  await sees(page, 'Applications: 2 added, 1 changed, 0 removed.');
  await deployed();
  say('a pod with a claim is deployed');

  await page.goto(`${environment}/components/${pages['?'].id}`);
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await dialog.getByLabel('volumes').fill('{}');
  await dialog.getByRole('button', { name: 'Save in the draft' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.goto(environment);
  await deployed(/^pod store uses no more, and leaves in the cluster with its data: claim \S+ \(10Mi, made \d+ \w+ \d{4}\)/);
  say('the claim is left by an edit, with consent');

  await page.goto(`${environment}?tab=past`);
  const state = page.getByRole('row').filter({ hasNotText: 'Present' }).filter({ hasText: /^\d+ / }).first();
  await state.getByRole('button').click();
  await page.getByRole('menuitem', { name: 'Back to this one' }).click();
  await dialog.getByRole('button', { name: 'Make it my draft' }).click();
  await sees(page, 'Applications: 0 added, 1 changed, 0 removed.');
  await deployed();
  say('a rollback takes the claim again, without consent');

  for (const [at, name] of ['pages', 'store'].entries()) {
    await page.goto(environment);
    await page.getByRole('button', { name: `Remove ${name} from the draft` }).click();
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await sees(page, `Applications: 0 added, 0 changed, ${at + 1} removed.`); // leaving the page earlier ends the call
  }
  await deployed(/^pod store is removed, and leaves in the cluster with its data: claim \S+ \(10Mi, made \d+ \w+ \d{4}\)/, 'Done, with warnings');
  await sees(page, /The persistent volumes of pod store stay in the cluster, with their data: /);
  say('the pod is removed, with consent to the loss of its claim');

  await page.goto(environment);
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await dialog.getByText(/^claim \S+ .*10Mi/).first().waitFor();
  await clear('the deletion of an environment');
  await dialog.getByRole('checkbox', { name: /^cluster cluster \([\w-]+\) is destroyed, with everything that is in it; its local volumes go with its servers/ }).check();
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Environments' }).waitFor();
  await page.getByRole('row').filter({ hasText: 'by hand' }).waitFor({ state: 'detached', timeout: 2 * minutes });
  say('nothing of it is left');
});

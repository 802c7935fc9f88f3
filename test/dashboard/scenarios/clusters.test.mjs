import { readFile } from 'node:fs/promises';

import { axe, barriers } from './axe.mjs';
import { pretend } from './cluster.mjs';
import { assert, environment, scenario, sees } from './harness.mjs';

async function clusterPage(page, rest = '') {
  const asked = await pretend(page);
  const id = await environment(page.context().request);
  await page.goto(`environments/${id}/clusters/c1${rest}`);
  return asked;
}

scenario('what runs in a cluster is found by name, namespace and problems, and the address keeps it', {}, async (page) => {
  await clusterPage(page);
  await page.getByRole('tab', { name: 'What runs' }).click();
  await page.getByRole('heading', { name: 'Pods (62)' }).waitFor();
  await page.getByLabel('Only with problems').check();
  await page.getByRole('heading', { name: 'Pods (1)' }).waitFor();
  await sees(page, 'CrashLoopBackOff');
  await page.getByLabel('Only with problems').uncheck();
  await page.getByRole('combobox', { name: 'Namespace' }).selectOption('kube-system');
  await sees(page, 'calico-node-xyz');
  await page.getByRole('textbox', { name: 'Find by name, image or state' }).fill('nothing is called that');
  await sees(page, 'Nothing matches');
  await page.reload();
  await sees(page, 'Nothing matches');
  await page.getByRole('button', { name: 'Show everything' }).click();
  await page.getByRole('heading', { name: 'Pods (62)' }).waitFor();
});

scenario('a log of a pod is followed, found in and saved, and shown as text whatever it holds', {}, async (page) => {
  const asked = await clusterPage(page, '/pods/default/web-6f7c9d-abcde');
  await sees(page, 'line 199');
  await sees(page, /the pod has ended: Deleted/);
  const find = page.getByRole('textbox', { name: 'Find in the log' });
  await find.fill('<img');
  await sees(page, '2 lines');
  const log = page.getByRole('log', { name: 'Log' });
  assert.match(await log.innerText(), /<img src=x onerror=alert\(1\)><script>alert\(2\)<\/script>/);
  assert.equal(await log.locator('img, script').count(), 0);
  await find.fill('red');
  await sees(page, '1 line');
  assert.match(await log.innerText(), /  red$/m);
  assert.equal(await log.locator('[style*=color]').count(), 0);
  await page.getByRole('combobox', { name: 'Container' }).selectOption('prepare');
  await page.waitForURL(/container=prepare/);
  const former = page.getByRole('button', { name: "Save the former run's log" });
  await former.waitFor({ state: 'detached' });
  await page.getByRole('combobox', { name: 'Container' }).selectOption('web');
  const [file] = await Promise.all([page.waitForEvent('download'), former.click()]);
  assert.equal(file.suggestedFilename(), 'web-6f7c9d-abcde-web-former.log');
  assert.equal(await readFile(await file.path(), 'utf8'), 'all of it\n');
  assert.ok(asked.some((path) => path.endsWith('/log?container=web&tail=10000&timestamps=true&previous=true')), asked.join('\n'));
});

scenario('a workload is scaled and restarted, and a pod recreated, from their pages, and events are shown as text', {}, async (page) => {
  await page.addInitScript(axe);
  const asked = await clusterPage(page, '?tab=running');
  await page.getByRole('link', { name: 'web', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Deployment web' }).waitFor();
  await sees(page, '2 of 3 pods ready');
  assert.equal(await page.getByRole('grid', { name: 'Events of the last hour' }).locator('img, script').count(), 0);
  const dialog = page.getByRole('dialog');
  assert.deepEqual(await barriers(page), [], 'axe on a workload');
  await page.getByRole('button', { name: 'Scale' }).click();
  await dialog.getByRole('button', { name: 'One more' }).click();
  assert.deepEqual(await barriers(page), [], 'axe on the dialog');
  await dialog.getByRole('button', { name: 'Apply' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.ok(asked.includes('PUT /workloads/default/Deployment/web/scale {"pods":4}'), asked.join('\n'));
  await page.getByRole('button', { name: 'Restart' }).click();
  await dialog.getByRole('button', { name: 'Restart' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.ok(asked.includes('POST /workloads/default/Deployment/web/restart '), asked.join('\n'));
  await page.getByRole('link', { name: 'web-6f7c9d-abcde' }).click();
  await page.getByRole('button', { name: 'Recreate' }).click();
  await dialog.getByRole('button', { name: 'Recreate' }).click();
  await page.getByRole('heading', { level: 1, name: 'Deployment web' }).waitFor();
  assert.ok(asked.includes('POST /pods/default/web-6f7c9d-abcde/recreate '), asked.join('\n'));
});

scenario('who only reads is offered no change of what runs', {}, async (page) => {
  await page.route('**/burano/v1/session', async (route) => {
    const answer = await route.fetch();
    const session = await answer.json();
    await route.fulfill({ response: answer, json: { ...session, rules: session.rules.filter((rule) => rule !== 'update_workload') } });
  });
  await clusterPage(page, '/workloads/default/Deployment/web');
  await sees(page, '2 of 3 pods ready');
  assert.equal(await page.getByRole('button', { name: /Scale|Restart/ }).count(), 0);
});

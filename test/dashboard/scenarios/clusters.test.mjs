import { readFile } from 'node:fs/promises';

import { axe, barriers, blemishes } from './axe.mjs';
import { component, gateways, pretend, status } from './cluster.mjs';
import { assert, call, environment, scenario, sees } from './harness.mjs';

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

scenario('gateways without a cluster show their nodes, their address, their routes and what they count, and nothing of Kubernetes', {}, async (page) => {
  await page.addInitScript(axe);
  const asked = await pretend(page, gateways);
  const id = await environment(page.context().request);
  await page.goto(`environments/${id}/components/c1`);
  await page.getByRole('button', { name: 'Nodes and routes' }).click();
  await page.getByRole('heading', { level: 1, name: 'doors' }).waitFor();
  await sees(page, 'Address of the gateways: 203.0.113.100');
  await page.getByRole('grid', { name: 'Nodes' }).getByRole('row').filter({ hasText: 'murano-gateway-1' }).waitFor();
  await page.getByRole('grid', { name: 'Routes' }).getByRole('row').filter({ hasText: '8080' }).filter({ hasText: /\d+\/s/ }).waitFor();
  for (const name of ['Download kubeconfig', 'Machines beside the cloud']) assert.equal(await page.getByRole('button', { name }).count(), 0, name);
  for (const name of ['etcd members', 'Kubernetes']) assert.equal(await page.getByRole('heading', { name, exact: true }).count(), 0, name);
  assert.deepEqual(await page.getByRole('tab').allInnerTexts(), ['Overview', 'Certificates']);
  assert.deepEqual(await barriers(page), []);
  await page.getByRole('tab', { name: 'Certificates' }).click();
  await page.getByRole('button', { name: 'renewCertificates' }).waitFor();
  assert.ok(!asked.some((path) => /running|snapshots|upgrade|ssh-key/.test(path)), asked.join('\n'));
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

scenario('what passes through the gateways is seen as it changes, and a gateway that does not answer spoils nothing', {}, async (page) => {
  await page.addInitScript(axe);
  const asked = await clusterPage(page);
  const row = page.getByRole('grid', { name: 'Routes' }).getByRole('row').filter({ hasText: '8080' });
  await row.getByText('10/s').first().waitFor();
  const points = () => row.locator('polyline').getAttribute('points');
  const first = await points();
  await row.getByText('Out 2 KiB/s').waitFor();
  await row.getByText('In 1 KiB/s').waitFor();
  await row.getByText('1 lately').waitFor();
  await row.getByText(/^10\.200\.1\.7:80 \(murano-kube-2\) Ready, 1\d\/s$/).waitFor();
  await row.getByText('10.200.1.8:80 (murano-kube-2) Does not answer, 0/s').waitFor();
  assert.notEqual(await points(), first, 'the line goes on');
  await sees(page, /murano-gateway-2 does not say what it counts/);
  await sees(page, /no sshd answered <img/);
  assert.equal(await row.locator('img[src], script').count(), 0);
  assert.deepEqual(await barriers(page), [], 'axe on routes');
  await page.getByRole('tab', { name: 'What runs' }).click();
  await page.getByRole('heading', { name: 'Pods (62)' }).waitFor();
  const count = () => asked.filter((path) => path.endsWith('/traffic')).length;
  const before = count();
  await page.waitForTimeout(5_000); // longer than two samples are apart
  assert.equal(count(), before, 'nobody asks where nobody looks');
});

scenario('snapshots are taken, downloaded, restored once it is said what is lost, and deleted', {}, async (page) => {
  await page.addInitScript(axe);
  const asked = await clusterPage(page);
  await page.getByRole('tab', { name: 'Snapshots and certificates' }).click();
  await sees(page, /One is taken every 6 hours/);
  const rows = page.getByRole('grid', { name: 'Snapshots' }).getByRole('row');
  const dialog = page.getByRole('dialog');
  await rows.filter({ hasText: 'By schedule' }).filter({ hasText: '5 MiB' }).filter({ hasText: 'Until newer ones take its place' }).waitFor();
  await rows.filter({ hasText: '<img src=x' }).filter({ hasText: 'Until it is deleted' }).waitFor();
  await page.getByRole('button', { name: 'Take a snapshot' }).click();
  await dialog.getByRole('textbox', { name: 'What it is for' }).fill('before the upgrade');
  assert.deepEqual(await barriers(page), [], 'axe on the dialog');
  await dialog.getByRole('button', { name: 'Take a snapshot' }).click();
  const taken = rows.filter({ hasText: 'before the upgrade' });
  await taken.waitFor();
  assert.deepEqual(await barriers(page), [], 'axe on snapshots');

  const choose = async (item) => {
    await taken.getByRole('button', { name: /^Actions/ }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  await taken.getByRole('button', { name: /^Actions/ }).click();
  const link = page.getByRole('menuitem', { name: 'Download' });
  assert.deepEqual([await link.getAttribute('href'), await link.getAttribute('download')], ['/burano/v1/snapshots/s3/content', 'kube-s3.db']);
  await page.keyboard.press('Escape');
  await choose('Restore');
  await dialog.getByText(/What Kubernetes was told since then is lost/).waitFor();
  assert.ok(!asked.some((call) => call.includes('c1_restore')), 'nothing happens before somebody agrees');
  await dialog.getByRole('button', { name: 'Restore' }).click();
  await dialog.getByText('Nothing runs here').waitFor();
  assert.ok(asked.includes('POST /c1_restore {"snapshot":"s3"}'), asked.join('\n'));
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await choose('Delete');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await taken.waitFor({ state: 'detached' });
});

scenario('certificates are listed by when they end, and rotated once it is said what that means', {}, async (page) => {
  await page.addInitScript(axe);
  const asked = await clusterPage(page, '?tab=protection');
  const rows = page.getByRole('grid', { name: 'Certificates' }).getByRole('row');
  await rows.filter({ hasText: 'etcd-peer' }).getByText(/^(9|10) days left$/).waitFor();
  assert.equal(await rows.count(), 1 + 6, 'the first ones');
  await page.getByRole('button', { name: 'Show all 10' }).click();
  await rows.filter({ hasText: 'Authority of the cluster' }).waitFor();
  assert.deepEqual(await barriers(page), [], 'axe on certificates');
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'rotate', exact: true }).click();
  await dialog.getByLabel('what').fill('certificates');
  await dialog.getByText(/starts again up to three times, and is away for some seconds each time/).waitFor();
  await dialog.getByRole('button', { name: 'Run' }).click();
  await dialog.getByText('Nothing runs here').waitFor();
  assert.ok(asked.some((call) => call.startsWith('POST /c1_rotate ')), asked.join('\n'));
});

scenario('the many actions of a cluster are found by groups and by words, on a narrow screen too, and what loses data is apart', {}, async (page) => {
  await page.addInitScript(axe);
  const type = 'com.mirantis.docker.kubernetes.KubernetesCluster';
  const { actions } = await call(page.context().request, 'GET', `/burano/v1/classes/${type}/actions`);
  const offered = Object.fromEntries(actions.filter((one) => !one.static).map(({ name, title, description, deprecated }) => [`c1_${name}`, { name, title, description, deprecated, enabled: true }]));
  const asked = await pretend(page, { component: { ...component, '?': { ...component['?'], _actions: offered } }, status });
  const id = await environment(page.context().request);
  await page.goto(`environments/${id}/clusters/c1`);
  const dialog = page.getByRole('dialog', { name: 'Actions of kube' });
  const open = () => page.getByRole('button', { name: 'Actions of kube' }).click();
  await open();
  await dialog.getByText(/^\d\d actions$/).waitFor();
  await dialog.getByRole('region', { name: 'Nodes and gateways' }).getByRole('button', { name: 'Scale', exact: true }).waitFor();
  const losses = dialog.getByRole('region', { name: 'These delete something or lose data' });
  for (const name of ['Restore a snapshot', 'Remove a group of nodes', 'Delete unused volumes']) await losses.getByRole('button', { name, exact: true }).waitFor();
  assert.deepEqual(await blemishes(page), []);

  await page.setViewportSize({ width: 390, height: 800 });
  for (const button of await dialog.getByRole('button').all()) {
    await button.scrollIntoViewIfNeeded();
    const { x, width } = await button.boundingBox();
    assert.ok(x >= 0 && x + width <= 390, `${await button.innerText()} is seen whole`);
  }
  await dialog.getByRole('textbox', { name: 'Find an action' }).fill('nothing is called that');
  await dialog.getByText(/^0 of \d\d actions$/).waitFor();
  await dialog.getByRole('textbox', { name: 'Find an action' }).fill('etcd file');
  await dialog.getByText(/^1 of \d\d actions$/).waitFor();
  await page.keyboard.press('Enter');
  const run = page.getByRole('dialog', { name: 'Defragment etcd: kube' });
  await run.getByRole('button', { name: 'Run' }).click();
  await run.getByText('Nothing runs here').waitFor();
  assert.ok(asked.includes('POST /c1_defragmentEtcd {}'), asked.join('\n'));
  await run.getByRole('button', { name: 'Cancel' }).click();
  await open();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
});

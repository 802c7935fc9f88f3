import { axe, blemishes } from './axe.mjs';
import { assert, call, environment, scenario, sees } from './harness.mjs';

/** Has the page see these findings of an environment. */
const found = (page, id, ...findings) =>
  page.route(`**/environments/${id}/findings`, (route) =>
    route.fulfill({ json: { findings: findings.map((one, i) => ({ id: `f${i}`, environment_id: id, duty: 'servers', object_id: null, subject: null, severity: 'warning',
      mends: '', since: '2026-11-01T00:00:00Z', closed: null, repairs: 0, deployment_id: null, next_repair: null, ...one })) } }),
  );

const undelegated = { kind: 'no-delegation', text: 'Servers that are stopped are not noticed', mends: 'Give it one: burano environment delegation set one',
  remedies: [{ kind: 'set-delegation', node: null }] };
const silent = { kind: 'node-not-ready', subject: 'murano-kube-2', object_id: 'c1', severity: 'critical', text: 'Node murano-kube-2 of cluster k takes no pods: kubelet', mends: 'burano node reboot',
  remedies: [{ kind: 'deploy-again', node: null }, { kind: 'reboot-node', node: 'murano-kube-2' }] };

scenario('a finding leads to its remedies, and has no command of the command line', {}, async (page) => {
  await page.addInitScript(axe);
  const id = await environment(page.context().request);
  // Without servers there is nothing that a keeper finds: the answer has the shape of the API.
  const { findings } = await call(page.context().request, 'GET', `/burano/v1/environments/${id}/findings`);
  assert.deepEqual(findings, []);
  await found(page, id, undelegated, silent, { kind: 'of-a-newer-server', text: 'Something new', mends: 'See there', remedies: [{ kind: 'new', node: null }] });
  await page.goto(`environments/${id}`);
  await sees(page, 'A node is not ready: murano-kube-2');
  await sees(page, 'See there');
  assert.equal(await page.getByText(/burano (environment|node) /).count(), 0);
  assert.match(await page.getByRole('link', { name: 'Reboot node murano-kube-2' }).getAttribute('href'), /\/clusters\/c1$/);
  assert.deepEqual(await blemishes(page), []);
  await page.getByRole('link', { name: 'Give a standing delegation' }).click();
  await page.getByRole('button', { name: 'Give delegation' }).waitFor();
});

scenario('findings and remedies are German in German', { locale: 'de' }, async (page) => {
  const id = await environment(page.context().request);
  await found(page, id, undelegated, silent);
  await page.goto(`environments/${id}`);
  await sees(page, 'Ein Node ist nicht bereit: murano-kube-2');
  await page.getByRole('link', { name: 'Dauerhafte Delegation geben' }).waitFor();
});

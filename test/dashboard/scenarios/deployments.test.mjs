import net from 'node:net';

import { axe, blemishes } from './axe.mjs';
import { assert, deploy, eventually, scenario, sees, server } from './harness.mjs';

const hello = (properties) => ({ type: 'io.burano.test.Hello', greeting: 'Hello', ...properties });

const addressOf = (made) => `environments/${made.environment}/deployments/${made.deployment}`;

const status = (page, text) => page.getByRole('status').filter({ hasText: text }).first().waitFor();

scenario('a deployment is watched live to its end', {}, async (page) => {
  await page.goto('deployments'); // the next page needs less time than the deployment
  await page.getByRole('heading', { level: 1 }).waitFor();
  const made = await deploy(page.context().request, hello({ times: 6, pause: 3 }));
  await page.goto(addressOf(made));
  await status(page, 'Running');
  await sees(page, 'Hello 1');
  await sees(page, 'Hello 6');
  await status(page, 'Successful');
});

scenario('a deployment that does not end is cancelled', { thorough: true }, async (page) => {
  const made = await deploy(page.context().request, { type: 'io.burano.test.Loops' });
  await page.goto(addressOf(made));
  await sees(page, 'It begins to wait');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).first().click();
  await status(page, /Abandoned|Failed/);
});

scenario('a deployment that failed begins with the error, its object and the next step, and the environment leads there', {}, async (page) => {
  const made = await deploy(page.context().request, hello({ name: 'greeter' }), { type: 'io.burano.test.Fails', name: 'hasty' });
  await page.goto(addressOf(made));
  await status(page, 'Failed');
  const failure = page.locator('.burano-failure');
  await failure.getByRole('heading', { name: /^Danger alert: ?It is too early for that$/ }).waitFor();
  const link = failure.getByRole('link', { name: 'hasty' });
  await link.waitFor();
  const top = async (one) => (await one.boundingBox()).y;
  const places = [await top(failure), await top(page.getByRole('log')), await top(page.getByRole('heading', { name: 'Steps' }))];
  assert.deepEqual(places, places.toSorted((a, b) => a - b), 'the error is above the log, and the log above the steps');
  assert.ok(places[0] < 400, `the error is seen at once, and not at ${places[0]}`);

  await failure.getByRole('button', { name: 'Edit the object' }).click();
  await page.getByRole('dialog', { name: /hasty/ }).getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('heading', { level: 1, name: 'hasty' }).waitFor();
  await page.goto(`environments/${made.environment}`);
  await page.getByRole('heading', { name: /It is too early for that$/ }).waitFor();
  await page.getByRole('link', { name: /^What failed in the deployment of / }).click();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.waitForURL((url) => url.pathname.includes('/deployments/') && !url.pathname.endsWith(made.deployment));
  await sees(page, 'Now it works');
  await status(page, 'Successful');
  assert.equal(await failure.count(), 0);
  await page.goto(`environments/${made.environment}`);
  await page.getByRole('link', { name: 'hasty' }).waitFor();
  assert.equal(await page.getByText('It is too early for that').count(), 0, 'a failure ends with the next deployment');
  await page.goto(addressOf(made));
  await page.getByRole('button', { name: 'See the newest deployment' }).click();
  await status(page, 'Successful');
});

scenario('the steps of a failed deployment are folded by server, and those that failed are open', {}, async (page) => {
  await page.addInitScript(axe);
  const made = await deploy(page.context().request, { type: 'io.burano.test.Fails' });
  const at = (second) => new Date(Date.UTC(2026, 10, 22, 6, 0, second)).toISOString();
  const step = (name, from, to, error = null) => ({ id: name, name, object: 'o', class: 'io.example.Cluster', started: at(from), finished: at(to), seconds: to - from, error, waits_for: [] });
  const steps = [step('servers', 0, 4), ...[1, 2, 3].flatMap((i) => [step(`murano-kube-${i}: connect`, 4, 5), step(`murano-kube-${i}: kubelet`, 5, 9, i === 2 ? 'the kubelet does not start' : null)])];
  await page.route('**/steps', (route) => route.fulfill({ json: { steps } }));
  await page.goto(addressOf(made));
  const table = page.getByRole('grid', { name: 'Steps' });
  const rows = table.locator('tbody').getByRole('row');
  await table.getByText('the kubelet does not start').waitFor();
  assert.equal(await rows.count(), 4 + 2, 'a row for each server, and the steps of the failed one');
  const failed = rows.filter({ hasText: '1 of 2 steps failed' });
  await failed.getByRole('button', { name: 'murano-kube-2', expanded: true }).click();
  assert.equal(await rows.count(), 4);
  await table.getByRole('button', { name: 'murano-kube-1', expanded: false }).press('Enter');
  await table.getByText('murano-kube-1: kubelet').waitFor();
  await page.getByRole('button', { name: 'Open all' }).click();
  assert.equal(await rows.count(), 4 + 7);
  assert.deepEqual(await blemishes(page), []);
  await page.getByRole('button', { name: 'Fold all' }).click();
  assert.equal(await rows.count(), 4);
});

scenario('a connection that is lost during a deployment is made again, and no report is missed', { user: null, watch: false }, async (page) => {
  const wire = await cuttable();
  try {
    await page.goto(`${wire.url}/dashboard/`);
    await page.getByRole('textbox', { name: 'User' }).fill('demo');
    await page.locator('#signin-password').fill('demo');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Catalog' }).waitFor();
    const made = await deploy(page.context().request, hello({ times: 20, pause: 1 }));
    await page.goto(`${wire.url}/dashboard/${addressOf(made)}`);
    await sees(page, 'Hello 2');
    wire.cut();
    await sees(page, /The connection is lost/);
    await new Promise((resolve) => setTimeout(resolve, 4000)); // some reports are written meanwhile
    await wire.mend();
    await status(page, 'Successful');
    await page.getByText('The connection is lost').waitFor({ state: 'detached' });
    await sees(page, /\b20 lines|\b2\d lines/);
    const shown = [];
    for (let i = 1; i <= 20; i++) {
      await page.getByRole('textbox', { name: 'Find in the log' }).fill(`Hello ${i}`);
      await sees(page, new RegExp(`Hello ${i}$`));
      shown.push(i);
    }
    assert.equal(shown.length, 20);
  } finally {
    await wire.close();
  }
});

scenario('the steps of a deployment are linked to what they waited for', { thorough: true }, async (page) => {
  const made = await deploy(page.context().request, hello());
  const at = (second) => new Date(Date.UTC(2026, 10, 22, 6, 0, second)).toISOString();
  const step = (id, from, to, ...waits_for) => ({ id, name: `step ${id}`, object: 'o', class: 'io.example.Cluster', started: at(from), finished: at(to), seconds: to - from, error: null, waits_for });
  const steps = [step('servers', 0, 4), step('keys', 0, 1), step('etcd', 4, 6, 'servers', 'keys'), step('images', 4, 5, 'servers'), step('api', 6, 9, 'etcd')];
  await page.route('**/steps', (route) => route.fulfill({ json: { steps } }));
  await page.goto(addressOf(made));
  const table = page.getByRole('grid', { name: 'Steps' });
  await table.getByRole('row').filter({ hasText: 'step etcd' }).filter({ hasText: 'step servers, step keys' }).waitFor();
  const lines = page.locator('.burano-links path');
  await eventually(() => lines.count(), (count) => count === 3, 'lines to what each step waited for last');
  assert.equal(await page.locator('.burano-link-strong').count(), 2, 'the steps that decided how long it took');
  await table.getByRole('row').filter({ hasText: 'step etcd' }).first().hover();
  await eventually(() => lines.count(), (count) => count === 4, 'all lines of the step that is pointed at');
});

/** A wire to the server that can be cut and mended. */
async function cuttable() {
  const target = new URL(server);
  const sockets = new Set();
  const relay = net.createServer((near) => {
    const far = net.connect(Number(target.port), target.hostname);
    for (const [socket, peer] of [[near, far], [far, near]]) {
      sockets.add(socket);
      socket.on('error', () => peer.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        peer.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  const listen = (port) => new Promise((resolve) => relay.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = relay.address();
  const cut = () => {
    const closed = new Promise((resolve) => relay.close(resolve));
    for (const socket of sockets) socket.destroy();
    return closed;
  };
  return { url: `http://127.0.0.1:${port}`, cut, mend: () => listen(port), close: cut };
}

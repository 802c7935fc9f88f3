// What scenarios share: a browser, somebody who is signed in, and the API beside it.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const require = createRequire(new URL('../../../web/dashboard/package.json', import.meta.url));
const { chromium } = require('playwright-core');

export const server = process.env.BURANO_URL;
export const keystone = process.env.BURANO_KEYSTONE;
export const axeSource = require.resolve('axe-core/axe.min.js');

/** How long to wait for anything: the machine may be busy with much else. */
export const patience = Number(process.env.BURANO_PATIENCE ?? 60) * 1000;

const pictures = fileURLToPath(new URL('../../../build/scenarios/', import.meta.url));

let running;

/** Starts the one browser of this file, or returns it. */
export async function browser() {
  running ??= await chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
      '--host-resolver-rules=MAP burano.test 127.0.0.1'],
  });
  return running;
}

after(() => running?.close());

/** Sends what the browser sends; cookies are those of the context. */
export async function call(request, method, path, data, { status = 200, headers = {} } = {}) {
  const answer = await request.fetch(server + path, { method, data, headers: { 'X-Requested-With': 'a test', Accept: 'application/json', ...headers }, timeout: patience });
  const text = await answer.text();
  assert.equal(answer.status(), status, `${method} ${path}: ${text}`);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const signIn = (request, user = 'demo', more = {}) => call(request, 'POST', '/burano/v1/session', { user, password: user, ...more });

/** Opens a window of somebody who is signed in, or of nobody with user null. What must never happen in it is noted in `page.seen`. */
export async function open(user = 'demo', { base = server, watch = true, ...options } = {}) {
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 900 }, locale: 'en', baseURL: `${base}/dashboard/`, ...options });
  context.setDefaultTimeout(patience);
  context.setDefaultNavigationTimeout(patience);
  const page = await context.newPage();
  page.seen = [];
  if (watch) watchOver(page, base);
  if (user) await call(context.request, 'POST', '/burano/v1/session', { user, password: user });
  return page;
}

/** What must never happen on any page: dialogs of scripts, errors, breaches of the policy, calls of other hosts. */
function watchOver(page, base) {
  page.on('dialog', (dialog) => {
    page.seen.push(`a script opened a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('pageerror', (error) => page.seen.push(`an exception: ${error.stack}`));
  page.on('console', (message) => {
    // Chromium notes every answer from 400 on; what the page makes of them is seen on it.
    if (message.type() === 'error' && !/^Failed to load resource/.test(message.text())) page.seen.push(`the console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== 'data:' && protocol !== 'blob:' && origin !== new URL(base).origin) page.seen.push(`a call of another host: ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 500) page.seen.push(`${response.status()} of ${response.url()}`);
  });
}

/** One scenario, named by what holds, in a window of its own; its last moment is kept as a picture when it fails. A thorough one, which looks
 * at very much or at what seldom changes, is a part of `make test-dashboard` alone. */
export function scenario(name, { user = 'demo', limit = 4 * patience, thorough = false, ...options }, run) {
  test(name, { timeout: limit, skip: thorough && !process.env.BURANO_THOROUGH && 'make test-dashboard has it' }, async (t) => {
    const page = await open(user, options);
    try {
      await run(page, t);
      assert.deepEqual(page.seen, []);
    } catch (error) {
      mkdirSync(pictures, { recursive: true });
      await page.screenshot({ path: `${pictures}${name.replaceAll(/\W+/g, '-').slice(0, 100)}.png` }).catch(() => undefined);
      error.message += `\n  at ${page.url()}\n  seen: ${JSON.stringify(page.seen)}`;
      throw error;
    } finally {
      // An answer that is still being made up when the scenario has ended is nobody's error.
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.context().close();
    }
  });
}

let counted = 0;

/** A name that no other scenario uses. */
export const fresh = (name) => `${name} ${process.pid}-${++counted}`;

/** Makes an environment by the API and returns its id. */
export async function environment(request, name = fresh('environment')) {
  return (await call(request, 'POST', '/v1/environments', { name })).id;
}

/** Opens a draft of an environment and adds components to it; returns the draft's id. */
export async function draft(request, id, ...components) {
  const session = (await call(request, 'POST', `/v1/environments/${id}/configure`)).id;
  for (const { type, name = type.split('.').at(-1), ...properties } of components) {
    await call(request, 'POST', `/v1/environments/${id}/services`, { '?': { type, id: objectId(), name }, name, ...properties }, { headers: { 'X-Configuration-Session': session } });
  }
  return session;
}

const objectId = () => crypto.randomUUID().replaceAll('-', '');

/** Deploys components in a new environment by the API; returns the ids of both. */
export async function deploy(request, ...components) {
  const id = await environment(request);
  const session = await draft(request, id, ...components);
  await call(request, 'POST', `/v1/environments/${id}/sessions/${session}/deploy`);
  const { deployments } = await call(request, 'GET', `/v1/environments/${id}/deployments`);
  return { environment: id, deployment: deployments[0].id };
}

/** Waits until what ask returns is true for good says; returns it. */
export async function eventually(ask, good, what, limit = patience) {
  const end = Date.now() + limit;
  for (;;) {
    const now = await ask();
    if (good(now)) return now;
    if (Date.now() > end) assert.fail(`${what}: it is still ${JSON.stringify(now)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Waits until the text is to be seen on the page. */
export const sees = (page, text) => page.getByText(text).filter({ visible: true }).first().waitFor();

/** Deploys the draft on the page of its environment: looks at the plan and agrees to the deployment. */
export async function deployShown(page) {
  await page.getByRole('button', { name: 'Deploy', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Deploy', exact: true }).click();
}

/** Waits until the page is there, says nowhere that it loads, and what it asked for is there. */
export async function calm(page) {
  await page.locator('h1, .pf-v6-c-alert.pf-m-danger').first().waitFor({ state: 'attached' });
  await page.waitForLoadState('networkidle');
  await page.locator('.pf-v6-c-skeleton, .pf-v6-c-spinner').first().waitFor({ state: 'detached' });
}

/** Makes a user with a role in projects, which are made where they are missing; the password is the name, which is returned. */
export async function memberOf(...projects) {
  const name = fresh('user').replaceAll(' ', '-');
  const admin = { methods: ['password'], password: { user: { name: 'admin', password: 'admin', domain: { id: 'default' } } } };
  const signedIn = await fetch(`${keystone}/auth/tokens`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ auth: { identity: admin, scope: { project: { name: 'admin', domain: { id: 'default' } } } } }),
  });
  const ask = async (method, path, body) => {
    const answer = await fetch(keystone + path, {
      method,
      headers: { 'X-Auth-Token': signedIn.headers.get('X-Subject-Token'), 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
    return answer.status === 204 ? null : answer.json();
  };
  const { user } = await ask('POST', '/users', { user: { name, password: name, domain_id: 'default' } });
  const [role] = (await ask('GET', '/roles?name=member')).roles;
  for (const one of projects) {
    const [found] = (await ask('GET', `/projects?name=${encodeURIComponent(one)}`)).projects;
    const project = found ?? (await ask('POST', '/projects', { project: { name: one, domain_id: 'default' } })).project;
    await ask('PUT', `/projects/${project.id}/users/${user.id}/roles/${role.id}`);
  }
  return name;
}

export { assert };

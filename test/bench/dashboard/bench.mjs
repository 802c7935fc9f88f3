// How long pages with much on them take to answer: 1,000 environments, 500 packages, an environment of 300 objects whose deployment makes
// 10,000 reports. `make bench-dashboard` runs it and prints a table for docs/measurements.md.
//
// What is measured is what Chromium itself says of an interaction (Event Timing, https://www.w3.org/TR/event-timing/): from the press of a key or
// button until the next frame is shown, in steps of 8 ms, and 16 at least. Each is done in three rounds, of which the middle one counts.
import { archive } from '../../dashboard/scenarios/archive.mjs';
import { assert, browser, call, calm, eventually, open, patience, server } from '../../dashboard/scenarios/harness.mjs';

const environments = 1000;
const packages = 500;
const objects = 300;
const reports = 10_000;
const limit = 200;
const rounds = 3;

const hello = 'io.burano.test.Hello';
const id = () => crypto.randomUUID().replaceAll('-', '');

/** Does what is to be done for each number, a few at a time. */
async function each(count, run) {
  let next = 0;
  await Promise.all(Array.from({ length: 4 }, async () => {
    while (next < count) await run(next++);
  }));
}

async function fill(request) {
  await each(environments, (i) => call(request, 'POST', '/v1/environments', { name: `environment ${i}` }));
  const admin = await open('admin', { watch: false });
  await each(packages, async (i) => {
    const fqn = `io.burano.bench.Application${i}`;
    const body = archive({
      'manifest.yaml': `Format: 1.4\nType: Application\nFullName: ${fqn}\nName: Application ${i}\nDescription: The ${i}th application of many\nAuthor: Burano\nTags: [many]\nClasses:\n  ${fqn}: A.yaml\n`,
      'Classes/A.yaml': `Name: ${fqn}\nExtends: io.murano.Application\n`,
    });
    const answer = await admin.context().request.post(`${server}/v1/catalog/packages`, {
      headers: { 'X-Requested-With': 'a benchmark' },
      multipart: { JsonString: JSON.stringify({ is_public: true }), file: { name: 'a.zip', mimeType: 'application/zip', buffer: body } },
      timeout: patience,
    });
    assert.equal(answer.status(), 200, await answer.text());
  });
  await admin.context().close();
  const large = (await call(request, 'POST', '/v1/environments', { name: 'large' })).id;
  const session = (await call(request, 'POST', `/v1/environments/${large}/configure`)).id;
  const services = Array.from({ length: objects }, (_, i) => ({ '?': { type: hello, id: id(), name: `hello ${i}` }, name: `hello ${i}`, greeting: 'Hello', times: Math.ceil(reports / objects) }));
  for (const service of services) await call(request, 'POST', `/v1/environments/${large}/services`, service, { headers: { 'X-Configuration-Session': session } });
  await call(request, 'POST', `/v1/environments/${large}/sessions/${session}/deploy`);
  const { deployments } = await call(request, 'GET', `/v1/environments/${large}/deployments`);
  await eventually(() => call(request, 'GET', `/v1/environments/${large}`), (now) => !['deploying', 'pending'].includes(now.status), 'the deployment', 10 * 60_000);
  return { large, deployment: deployments[0].id };
}

/** The longest interaction since this was asked last. */
async function longest(page) {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 50)))));
  return page.evaluate(() => {
    const taken = globalThis.taken.splice(0);
    return taken.length > 0 ? Math.max(...taken) : 16;
  });
}

const typing = (name, role = 'textbox') => async (page, words) => {
  const field = page.getByRole(role, { name });
  await field.click();
  await field.pressSequentially(words, { delay: 60 });
};

const press = (role, name) => (page) => page.getByRole(role, { name }).first().click();

const pagesOf = ({ large, deployment }) => [
  { name: 'catalog', address: 'catalog', does: { 'type in the search': (page) => typing('Search applications', 'searchbox')(page, 'kube') } },
  {
    name: 'environments',
    address: 'environments',
    does: {
      'go to the next page': press('button', /next page/i),
      'type in the filter': (page) => typing('Filter by name')(page, '99'),
      'choose all of a page': press('checkbox', 'Choose all of this page'),
    },
  },
  { name: 'packages', address: 'packages', does: { 'type in the search': (page) => typing('Search packages')(page, '42') } },
  {
    name: 'environment',
    address: `environments/${large}`,
    does: { 'open a menu': press('button', /toggle|^Actions of/i), 'to the next page': press('button', /next page/i), 'to the deployments': press('tab', 'Deployments'), 'back to the components': press('tab', 'Components') },
  },
  {
    name: 'topology',
    address: `environments/${large}?tab=topology`,
    does: { 'zoom out': press('button', /zoom out/i), 'show all': press('button', 'Show all of it'), 'find an object': (page) => typing('Find an object')(page, '29') },
  },
  {
    name: 'deployment',
    address: `environments/${large}/deployments/${deployment}`,
    does: {
      'find in the log': (page) => typing('Find in the log')(page, 'Hello 33'),
      'only errors': async (page) => {
        await page.getByRole('textbox', { name: 'Find in the log' }).fill('');
        await page.getByRole('combobox', { name: 'Level' }).focus();
        await page.keyboard.press('End');
      },
      'all levels again': (page) => page.keyboard.press('Home'),
    },
  },
];

const middle = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const setup = await open('demo', { watch: false });
const began = Date.now();
const made = await fill(setup.context().request);
console.log(`${environments} environments, ${packages} packages, ${objects} objects and ${reports} reports were made in ${((Date.now() - began) / 1000).toFixed(0)} s\n`);
const page = await open('demo');
await page.addInitScript(() => {
  globalThis.taken = [];
  new PerformanceObserver((list) => globalThis.taken.push(...list.getEntries().filter((one) => one.interactionId).map((one) => one.duration))).observe({ type: 'event', durationThreshold: 16 });
});
const slow = [];
page.setDefaultTimeout(20_000);
console.log('| page | shown after ms | interaction | ms until the next frame |\n|---|---:|---|---:|');
for (const { name, address, does } of pagesOf(made)) {
  const shown = [];
  const taken = {};
  for (let i = 0; i < rounds; i++) {
    const start = Date.now();
    await page.goto(address);
    await calm(page);
    shown.push(Date.now() - start);
    await longest(page);
    for (const [what, act] of Object.entries(does)) {
      await act(page).catch((error) => assert.fail(`${name}: ${what}: ${error.message}`));
      (taken[what] ??= []).push(await longest(page));
    }
  }
  for (const [what, all] of Object.entries(taken)) {
    console.log(`| ${name} | ${middle(shown)} | ${what} | ${middle(all)} |`);
    if (middle(all) > limit) slow.push(`${name}: ${what}: ${middle(all)} ms`);
  }
}
assert.deepEqual(page.seen, []);
await (await browser()).close();
assert.deepEqual(slow, [], `interactions over ${limit} ms`);

import { axe, blemishes } from './axe.mjs';
import { assert, call, deploy, draft, environment, eventually, fresh, scenario } from './harness.mjs';

const rowOf = (page, name) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });

const idle = (request, id) => eventually(() => call(request, 'GET', `/v1/environments/${id}`), ({ status }) => status !== 'deploying', 'the end of the task');

scenario('a state belongs to a component, the environment has the worst, and an action ends no failure', {}, async (page) => {
  await page.addInitScript(axe);
  const { request } = page.context();
  const { environment: id } = await deploy(request, { type: 'io.burano.test.Hello', greeting: 'Hello', name: 'calm' }, { type: 'io.burano.test.Fails', name: 'hasty' });
  await idle(request, id);
  const { name } = await call(request, 'GET', `/v1/environments/${id}`);
  const label = (text) => page.getByRole('status').filter({ hasText: text }).first().waitFor();

  await page.goto(`environments/${id}`);
  await label('Failed');
  await rowOf(page, 'calm').getByText('Ready', { exact: true }).waitFor();
  await rowOf(page, 'hasty').getByText('Failed', { exact: true }).waitFor();
  await page.getByRole('heading', { name: /It is too early for that$/ }).waitFor();
  assert.deepEqual(await blemishes(page), []);

  // The action of one component succeeds. Murano's status is ready then.
  await rowOf(page, 'calm').getByRole('button', { name: /Actions/ }).click();
  await page.getByRole('menuitem', { name: 'again' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox').first().fill('you');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await dialog.getByText('Hello you').waitFor();
  assert.equal((await idle(request, id)).status, 'ready');
  await page.goto('environments');
  await page.getByRole('searchbox').or(page.getByRole('textbox', { name: 'Filter by name' })).first().fill(name);
  await rowOf(page, name).getByText('Failed', { exact: true }).waitFor();
  await page.getByRole('link', { name, exact: true }).click();
  await label('Failed');

  // A change belongs to its component, too.
  await rowOf(page, 'calm').getByRole('link', { name: 'calm', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'calm' }).waitFor();
  await page.getByText('Ready', { exact: true }).waitFor();
  assert.equal(await page.getByText('It is too early for that').count(), 0, 'its neighbour has failed');
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await dialog.getByRole('textbox', { name: /[Gg]reeting/ }).fill('Servus');
  await dialog.getByRole('button', { name: 'Save in the draft' }).click();
  await page.getByText('Has undeployed changes', { exact: true }).waitFor();
  await page.goto(`environments/${id}`);
  await rowOf(page, 'calm').getByText('Has undeployed changes', { exact: true }).waitFor();
  await rowOf(page, 'hasty').getByText('Failed', { exact: true }).waitFor();

  // The page of what failed begins with the reason, and the next deployment ends it.
  await rowOf(page, 'hasty').getByRole('link', { name: 'hasty', exact: true }).click();
  await page.getByRole('heading', { name: /It is too early for that$/ }).waitFor();
  assert.deepEqual(await blemishes(page), []);
  await page.goto(`environments/${id}`);
  await page.getByRole('button', { name: 'Deploy', exact: true }).click();
  await dialog.getByRole('button', { name: 'Deploy', exact: true }).click();
  await page.waitForURL('**/deployments/*');
  await page.getByRole('status').filter({ hasText: 'Successful' }).first().waitFor();
  await page.goto(`environments/${id}`);
  await label('Ready');
  for (const one of ['calm', 'hasty']) await rowOf(page, one).getByText('Ready', { exact: true }).waitFor();
  assert.equal(await page.getByText('It is too early for that').count(), 0);
});

scenario('a draft without changes changes no state, and findings are the state of their component', { locale: 'de' }, async (page) => {
  const { request } = page.context();
  const name = fresh('still');
  const id = await environment(request, name);
  await call(request, 'POST', `/v1/environments/${id}/configure`);
  await page.goto(`environments/${id}`);
  await page.getByRole('status').filter({ hasText: 'Noch nicht deployt' }).first().waitFor();
  const session = await draft(request, id, { type: 'io.burano.test.Hello', greeting: 'Hello', name: 'calm' });
  await call(request, 'POST', `/v1/environments/${id}/sessions/${session}/deploy`);
  await idle(request, id);
  // Without servers there is nothing that a keeper finds.
  await page.route(`**/environments/${id}/components`, async (route) => {
    const answer = await route.fetch();
    const whole = await answer.json();
    assert.deepEqual([whole.state, whole.components[0].state, whole.components[0].findings], ['ready', 'ready', {}]);
    await route.fulfill({ response: answer, json: { ...whole, state: 'unhealthy', components: [{ ...whole.components[0], state: 'unhealthy', findings: { critical: 1 } }] } });
  });
  await page.goto(`environments/${id}`);
  await page.getByRole('status').filter({ hasText: 'Gestört' }).first().waitFor();
  await rowOf(page, 'calm').getByText('Gestört', { exact: true }).waitFor();
});

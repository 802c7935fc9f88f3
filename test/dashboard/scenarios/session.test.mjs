import { assert, call, environment, fresh, keystone, memberOf, open, scenario, sees, server } from './harness.mjs';

async function fill(page, user, password) {
  await page.getByRole('textbox', { name: 'User' }).fill(user);
  await page.locator('#signin-password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

scenario('signing in leads to the catalog, and a reload keeps the sign-in', { user: null }, async (page) => {
  await page.goto('');
  await fill(page, 'demo', 'demo');
  await page.getByRole('heading', { level: 1, name: 'Catalog' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Catalog' }).waitFor();
});

scenario('a wrong password is refused in words, and nothing but the password is to be typed again', { user: null }, async (page) => {
  await page.goto('');
  await fill(page, 'demo', 'wrong');
  await page.locator('.pf-v6-c-alert.pf-m-danger').waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'User' }).inputValue(), 'demo');
  await fill(page, 'demo', 'demo');
  await page.getByRole('heading', { level: 1, name: 'Catalog' }).waitFor();
});

scenario('what is left empty at the sign-in is asked for in words, and has the focus', { user: null }, async (page) => {
  await page.goto('');
  await page.getByRole('textbox', { name: 'User' }).fill('demo');
  await page.keyboard.press('Enter');
  await sees(page, 'Type your user and your password.');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'signin-password');
  await page.keyboard.type('demo');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Catalog' }).waitFor();
});

scenario('a deep link leads through the sign-in to its page', { user: null }, async (page) => {
  await page.goto('environments');
  await fill(page, 'demo', 'demo');
  await page.getByRole('heading', { level: 1, name: 'Environments' }).waitFor();
});

scenario('signing out ends the sign-in', {}, async (page) => {
  await page.goto('');
  await page.getByRole('button', { name: 'Signed in as demo' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('textbox', { name: 'User' }).waitFor();
  await call(page.context().request, 'GET', '/burano/v1/session', undefined, { status: 401 });
});

scenario('a sign-in that ends in the middle of a form is renewed in place, and the form is kept', {}, async (page) => {
  await page.goto('environments');
  await page.getByRole('button', { name: 'Create environment' }).first().click();
  const name = fresh('half filled');
  await page.getByRole('dialog').getByLabel('Name').fill(name);
  await call(page.context().request, 'DELETE', '/burano/v1/session', undefined, { status: 204 });
  await page.getByRole('dialog').getByRole('button', { name: 'Create environment' }).click();
  const again = page.getByRole('dialog', { name: 'Your sign-in has ended' });
  await again.locator('#signin-password').fill('demo');
  await again.getByRole('button', { name: 'Sign in' }).click();
  await again.waitFor({ state: 'detached' });
  const form = page.getByRole('dialog');
  assert.equal(await form.getByLabel('Name').inputValue(), name);
  await form.getByRole('button', { name: 'Create environment' }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
});

scenario('a link to the environment of another project shows the refusal and nothing of it', {}, async (page) => {
  const other = await open('other');
  const name = fresh('of others');
  const id = await environment(other.context().request, name);
  await page.goto(`environments/${id}`);
  await sees(page, 'That did not work');
  assert.equal(await page.getByText(name).count(), 0);
  await other.context().close();
});

scenario('who has several projects chooses one, and changes it later', { user: null }, async (page) => {
  const projects = [fresh('one'), fresh('two')];
  const name = await memberOf(...projects);
  await page.goto('');
  await fill(page, name, name);
  await sees(page, 'Choose the project to work in');
  await page.getByRole('button', { name: projects[0] }).click();
  await page.getByRole('button', { name: 'Choose a project' }).click();
  await page.getByRole('menuitem', { name: projects[1] }).or(page.getByRole('option', { name: projects[1] })).click();
  await page.getByRole('button', { name: 'Choose a project' }).filter({ hasText: projects[1] }).waitFor();
});

// Keystone is another host, which the browser goes to.
scenario('signing in by federation leads back to the page that was wanted, after a project was chosen', { user: null, watch: false }, async (page) => {
  await page.goto('environments');
  await page.getByRole('button', { name: 'Continue with Company' }).click();
  const project = page.getByRole('button', { name: 'demo', exact: true });
  const heading = page.getByRole('heading', { level: 1, name: 'Environments' });
  await project.or(heading).waitFor();
  if (await project.isVisible()) await project.click();
  await heading.waitFor();
  assert.doesNotMatch(page.url(), /ticket/);
});

scenario('a ticket that this browser has not begun for signs nobody in, and says so', { user: null, watch: false }, async (page) => {
  const posted = await page.context().request.get(`${keystone}/auth/OS-FEDERATION/websso/mapped?origin=${server}/burano/v1/session/websso`);
  const [, token] = /name="token" value="([^"]*)"/.exec(await posted.text());
  const led = await page.context().request.post(`${server}/burano/v1/session/websso`, { form: { token }, maxRedirects: 0 });
  await page.goto(server + led.headers().location);
  await sees(page, /This browser has not begun to sign in/);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('textbox', { name: 'User' }).waitFor();
});

scenario('a sign-in by federation that has ended is renewed in another tab, and the form is kept', { user: null, watch: false }, async (page) => {
  await page.goto('environments');
  await page.getByRole('button', { name: 'Continue with Company' }).click();
  const create = page.getByRole('button', { name: 'Create environment' }).first();
  await create.click();
  const name = fresh('half filled');
  await page.getByRole('dialog').getByLabel('Name').fill(name);
  await call(page.context().request, 'DELETE', '/burano/v1/session', undefined, { status: 204 });
  await page.getByRole('dialog').getByRole('button', { name: 'Create environment' }).click();
  const again = page.getByRole('dialog', { name: 'Your sign-in has ended' });
  await again.getByRole('button', { name: 'Continue with Company' }).click();
  await again.waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('dialog').getByLabel('Name').inputValue(), name);
});

scenario('an administrator lets Burano work in a project with a role of its own, and ends it, which its members see', { user: 'admin' }, async (page) => {
  const member = await open(await memberOf(fresh('project')));
  const { project } = await call(member.context().request, 'GET', '/burano/v1/session');
  const role = async () => (await call(member.context().request, 'GET', `/burano/v1/projects/${project.id}/role`)).enabled;
  await member.goto('quotas');
  await sees(member, 'by trusts of users');
  await sees(member, 'Managers of the project and administrators change this.');
  assert.equal(await member.getByRole('button', { name: 'Enable the role' }).count(), 0);

  await page.goto(`quotas?project=${project.id}`);
  await page.getByRole('button', { name: 'Enable the role' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal(await role(), false);
  await page.getByRole('button', { name: 'Enable the role' }).click();
  await sees(page.getByRole('dialog'), /Burano’s user burano gets these roles in the project: member/);
  await page.getByRole('dialog').getByRole('button', { name: 'Enable the role' }).click();
  await sees(page, /^with a role of its own$/);
  assert.equal(await role(), true);
  await member.reload();
  await sees(member, /^with a role of its own$/);
  await member.context().close();

  await page.getByRole('button', { name: 'Disable the role' }).click();
  await sees(page.getByRole('dialog'), /Tasks that were started to work with them fail/);
  await page.getByRole('dialog').getByRole('button', { name: 'Disable the role' }).click();
  await sees(page, 'by trusts of users');
});

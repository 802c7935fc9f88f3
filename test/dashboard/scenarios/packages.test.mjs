import { readFile } from 'node:fs/promises';

import { archive } from './archive.mjs';
import { box, next, through } from './form.mjs';
import { assert, call, environment, fresh, scenario, sees } from './harness.mjs';

const choose = (page, name, buffer) =>
  page.getByRole('dialog').locator('input[type="file"]').setInputFiles({ name, mimeType: 'application/zip', buffer });

async function upload(page, name, content) {
  await page.goto('packages');
  await page.getByRole('button', { name: 'Import packages' }).first().click();
  await choose(page, name, content);
  await page.getByRole('dialog').getByRole('button', { name: 'Import', exact: true }).click();
}

/** A small package of its own name: what it is called, and its archive. */
function small({ more = '', files = {} } = {}) {
  const name = fresh('Small').replaceAll(' ', '');
  const fqn = `io.burano.test.${name.replaceAll('-', 'x')}`;
  const content = archive({
    'manifest.yaml': `Format: 1.4\nType: Application\nFullName: ${fqn}\nName: ${name}\nDescription: small\nAuthor: Burano\n${more}Classes:\n  ${fqn}: A.yaml\n`,
    'Classes/A.yaml': `Name: ${fqn}\nExtends: io.murano.Application\n`,
    ...files,
  });
  return { name, fqn, content };
}

async function imported(page, content, choose = async () => undefined) {
  await page.goto('packages');
  await page.getByRole('button', { name: 'Import packages' }).first().click();
  await page.getByRole('dialog').locator('input[type="file"]').setInputFiles({ name: 'small.zip', mimeType: 'application/zip', buffer: content });
  await choose(page.getByRole('dialog'));
  await page.getByRole('dialog').getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

const rowOf = (page, name) => page.getByRole('row').filter({ hasText: name });

scenario('what is no package is refused with the reason', {}, async (page) => {
  await upload(page, 'notes.zip', Buffer.from('this is no archive'));
  await sees(page, 'notes.zip was refused');
  await sees(page, /archive|zip/i);
});

scenario('a package without a manifest is refused with the reason', { thorough: true }, async (page) => {
  await upload(page, 'empty.zip', archive({ 'readme.txt': 'nothing' }));
  await sees(page, 'empty.zip was refused');
  await sees(page, /manifest/i);
});

scenario('a package is imported, changed, made inactive and deleted', {}, async (page) => {
  const { name, fqn, content } = small();
  await imported(page, content);
  await sees(page, `Imported: ${name}`);
  await page.getByRole('link', { name: 'Show it in the catalog' }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await page.goto(`packages?search=${name}`);
  const row = page.getByRole('row').filter({ hasText: name });
  await row.getByRole('button', { name: /^Actions of/ }).click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Description' }).fill('smaller');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  const { packages } = await call(page.context().request, 'GET', `/v1/catalog/packages?fqn=${fqn}&owned=true`);
  assert.equal(packages[0].description, 'smaller');

  await row.getByRole('switch', { name: `${name} is active` }).click({ force: true });
  await row.getByRole('switch', { name: `${name} is active`, checked: false }).waitFor();

  await row.getByRole('button', { name: /^Actions of/ }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await row.waitFor({ state: 'detached' });
});

scenario('several packages are deleted at once', { thorough: true }, async (page) => {
  const tag = fresh('tag').replaceAll(' ', '');
  const two = [small({ more: `Tags: [${tag}]\n` }), small({ more: `Tags: [${tag}]\n` })];
  for (const { content } of two) await imported(page, content);
  await page.goto(`packages?search=${tag}`);
  for (const { name } of two) await page.getByRole('checkbox', { name: `Choose ${name}` }).check();
  await page.getByRole('button', { name: 'Delete (2)' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await sees(page, 'No package matches');
});

scenario('a package is found by its tag and its type, and downloaded as it was imported', { thorough: true }, async (page) => {
  const tag = fresh('tag').replaceAll(' ', '');
  const { name, fqn, content } = small({ more: `Tags: [${tag}]\n` });
  await imported(page, content);
  await page.getByRole('textbox', { name: 'Search packages' }).fill(tag);
  await rowOf(page, name).waitFor();
  await page.getByRole('combobox', { name: 'Type' }).selectOption('Library');
  await sees(page, 'No package matches');
  await page.getByRole('combobox', { name: 'Type' }).selectOption('Application');
  await rowOf(page, name).getByRole('button', { name: /^Actions of/ }).click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Download' }).click()]);
  assert.equal(file.suggestedFilename(), `${fqn}.zip`);
  assert.deepEqual(await readFile(await file.path()), content);
});

scenario('a package counts in its category, which cannot be deleted as long as it does', { user: 'admin' }, async (page) => {
  const category = fresh('category');
  const { id } = await call(page.context().request, 'POST', '/v1/catalog/categories', { name: category });
  const { name, content } = small();
  await imported(page, content, (dialog) => dialog.getByRole('checkbox', { name: category }).check());
  await page.goto('categories');
  await rowOf(page, category).getByText('1', { exact: true }).waitFor();
  assert.ok(await page.getByRole('button', { name: `Delete ${category}` }).isDisabled());
  await page.goto(`catalog?category=${encodeURIComponent(category)}`);
  await page.getByRole('link', { name, exact: true }).waitFor();
  const [{ id: made }] = (await call(page.context().request, 'GET', `/v1/catalog/packages?search=${name}&owned=true`)).packages;
  await call(page.context().request, 'DELETE', `/v1/catalog/packages/${made}`);
  await page.goto('categories');
  await rowOf(page, category).getByText('0', { exact: true }).waitFor();
  await call(page.context().request, 'DELETE', `/v1/catalog/categories/${id}`);
});

scenario('a package that only administrators may make public stays as it is', { thorough: true }, async (page) => {
  const { name, content } = small();
  await imported(page, content);
  await page.goto(`packages?search=${name}`);
  await rowOf(page, name).getByRole('switch', { name: `${name} is public` }).click({ force: true });
  await page.locator('main .pf-v6-c-alert.pf-m-danger').waitFor();
  await rowOf(page, name).getByRole('switch', { name: `${name} is public`, checked: false }).waitFor();
});

scenario('a package that is too large is refused with the reason', { thorough: true }, async (page) => {
  await upload(page, 'large.zip', Buffer.concat([small().content, Buffer.alloc(6 << 20)]));
  await sees(page, 'large.zip was refused');
  await sees(page, /5 ?MiB|5242880|too (big|large)|at most/i);
});

scenario('a package of a Heat template has a form of its parameters', { thorough: true }, async (page) => {
  const name = fresh('Heat').replaceAll(' ', '');
  const template = 'heat_template_version: 2013-05-23\nparameters:\n  greeting: {type: string, default: Hello, description: What it says}\n' +
    'resources:\n  text: {type: OS::Heat::RandomString}\n';
  await imported(page, archive({
    'manifest.yaml': `Format: Heat.HOT/1.0\nType: Application\nFullName: io.burano.test.${name.replaceAll('-', 'x')}\nName: ${name}\nDescription: heat\nAuthor: Burano\n`,
    'template.yaml': template,
  }));
  const { request } = page.context();
  const id = await environment(request);
  const [{ id: made }] = (await call(request, 'GET', `/v1/catalog/packages?search=${name}&owned=true`)).packages;
  await page.goto(`environments/${id}/add/${made}`);
  await box(page, 'Application Name').fill('heat-one');
  await next(page);
  const greeting = page.getByRole('textbox', { name: /greeting/i });
  await greeting.fill('Good day');
  await through(page);
  await sees(page, 'Your draft has changes that are not deployed');
});

scenario('the packages of a bundle are imported in its order, and it is said which of them are not among the files', { thorough: true }, async (page) => {
  const one = small();
  const other = small();
  await page.goto('packages');
  await page.getByRole('button', { name: 'Import packages' }).first().click();
  const dialog = page.getByRole('dialog');
  const drop = (...files) => dialog.locator('input[type="file"]').setInputFiles(files.map(([name, buffer]) => ({ name, mimeType: 'application/octet-stream', buffer })));
  const bundle = (...names) => Buffer.from(JSON.stringify({ Packages: names.map((Name) => ({ Name, Version: '' })) }));
  await drop(['notes.bundle', Buffer.from('{"Packages": "none"}')]);
  await sees(page, 'notes.bundle is no bundle: it has no list "Packages" with names');
  await drop(['demo.bundle', bundle(other.fqn, one.fqn)], [`${one.fqn}.zip`, one.content]);
  await sees(page, 'demo.bundle names 2 packages');
  await dialog.getByRole('listitem').filter({ hasText: `${other.fqn}.zip` }).waitFor();
  await drop([`${other.fqn}.zip`, other.content]);
  await dialog.getByRole('listitem').filter({ hasText: `${other.fqn}.zip` }).waitFor({ state: 'detached' });
  const sent = [];
  page.on('response', (response) => {
    if (response.request().method() === 'POST' && response.url().endsWith('/v1/catalog/packages')) sent.push(response.json());
  });
  await dialog.getByRole('button', { name: 'Import 2 packages' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.deepEqual((await Promise.all(sent)).map((made) => made.name), [other.name, one.name], 'in the order of the bundle');
  await page.getByRole('textbox', { name: 'Search packages' }).fill(other.name);
  await rowOf(page, other.name).first().waitFor();
});

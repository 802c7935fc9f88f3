import { archive } from './archive.mjs';
import { assert, call, fresh, scenario, sees } from './harness.mjs';

const choose = (page, name, buffer) =>
  page.getByRole('dialog').locator('input[type="file"]').setInputFiles({ name, mimeType: 'application/zip', buffer });

async function upload(page, name, content) {
  await page.goto('packages');
  await page.getByRole('button', { name: 'Import packages' }).first().click();
  await choose(page, name, content);
  await page.getByRole('dialog').getByRole('button', { name: 'Import', exact: true }).click();
}

scenario('what is no package is refused with the reason', {}, async (page) => {
  await upload(page, 'notes.zip', Buffer.from('this is no archive'));
  await sees(page, 'notes.zip was refused');
  await sees(page, /archive|zip/i);
});

scenario('a package without a manifest is refused with the reason', {}, async (page) => {
  await upload(page, 'empty.zip', archive({ 'readme.txt': 'nothing' }));
  await sees(page, 'empty.zip was refused');
  await sees(page, /manifest/i);
});

scenario('a package is imported, changed, made inactive and deleted', {}, async (page) => {
  const name = fresh('Small').replaceAll(' ', '');
  const fqn = `io.burano.test.${name.replaceAll('-', 'x')}`;
  await upload(page, 'small.zip', archive({
    'manifest.yaml': `Format: 1.4\nType: Application\nFullName: ${fqn}\nName: ${name}\nDescription: small\nAuthor: Burano\nClasses:\n  ${fqn}: A.yaml\n`,
    'Classes/A.yaml': `Name: ${fqn}\nExtends: io.murano.Application\n`,
  }));
  await page.getByRole('dialog').waitFor({ state: 'detached' });
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

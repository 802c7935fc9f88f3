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
  await row.getByRole('button', { name: /Kebab toggle|Actions of/ }).click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Description' }).fill('smaller');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  const { packages } = await call(page.context().request, 'GET', `/v1/catalog/packages?fqn=${fqn}&owned=true`);
  assert.equal(packages[0].description, 'smaller');

  await row.getByRole('switch', { name: `${name} is active` }).click({ force: true });
  await row.getByRole('switch', { name: `${name} is active`, checked: false }).waitFor();

  await row.getByRole('button', { name: /Kebab toggle|Actions of/ }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await row.waitFor({ state: 'detached' });
});

/** A zip archive whose files are stored as they are (APPNOTE.TXT 6.3.10). */
function archive(files) {
  const parts = [];
  const entries = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const [bytes, content] = [Buffer.from(name), Buffer.from(text)];
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(content.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(bytes.length, 22);
    const head = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, bytes, content]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    entries.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\0', 'latin1'), common, tail, bytes]));
    parts.push(head);
    offset += head.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, directory, end]);
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc >>> 0;
}

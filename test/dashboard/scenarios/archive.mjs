// Zip archives made here: stored as they are, without compression (APPNOTE.TXT 6.3.10).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/** The archive of a folder, such as that of a package. */
export function archiveOf(folder) {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return archive(
    Object.fromEntries(
      names.map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [path.slice(folder.length).replace(/^\//, ''), readFileSync(path)];
      }),
    ),
  );
}

/** An archive of files, given by their names. */
export function archive(files) {
  const parts = [];
  const entries = [];
  let offset = 0;
  for (const [name, given] of Object.entries(files)) {
    const [bytes, content] = [Buffer.from(name), Buffer.from(given)];
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

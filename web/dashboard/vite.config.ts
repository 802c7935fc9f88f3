import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

import { leanFrame, leanStyles } from './lean.ts';
import { licencesOf } from './licences.ts';

// The server serves the built files below /dashboard/; during development, Vite forwards calls of the API to
// BURANO_URL.
const server = process.env.BURANO_URL ?? 'http://127.0.0.1:8082';

// gzipped is a file's content in gzip's format, by zopfli where that is installed: it takes 4 % less than gzip at its best.
function gzipped(file: string, content: Buffer): Buffer {
  const zopfli = spawnSync('zopfli', ['-c', '--i5', file], { maxBuffer: content.length + 1024 });
  return zopfli.status === 0 ? zopfli.stdout : gzipSync(content, { level: 9 });
}

// compressed puts a .br and a .gz beside each text that is built, for the server to send.
const compressed = (): Plugin => ({
  name: 'compressed',
  apply: 'build',
  writeBundle(options, bundle) {
    for (const name of Object.keys(bundle).filter((name) => /\.(js|css|html|svg)$/.test(name))) {
      const file = join(options.dir ?? 'dist', name);
      const content = readFileSync(file);
      if (content.length < 1024) continue;
      writeFileSync(`${file}.br`, brotliCompressSync(content));
      writeFileSync(`${file}.gz`, gzipped(file, content));
    }
  },
});

// licences writes the licences of the shipped packages into licences.txt.
const licences = (): Plugin => ({
  name: 'licences',
  apply: 'build',
  generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'licences.txt', source: licencesOf([...this.getModuleIds()]) });
  },
});

// firstLoad puts the files of a first visit into few chunks, which compress better than many small ones: the parts
// for all, the common parts of sign-in and pages, and the common parts of all pages. Each other page has files of its
// own.
const firstLoad = [
  { name: 'start', tags: ['$initial' as const], priority: 3 },
  { name: 'common', test: /src\/shell\/Failure\.tsx$|react-core\/dist\/esm\/components\/(Card|TextInput)\/\w+\.js$/, priority: 2 },
  { name: 'pages', test: /src\/shell\/Pages\.tsx$/, priority: 1 },
];

export default defineConfig({
  base: '/dashboard/',
  plugins: [react(), leanStyles(), leanFrame(), licences(), compressed()],
  build: {
    outDir: 'dist',
    emptyOutDir: false, // dist/.gitkeep stays: without it a Go build without Node finds nothing to embed
    assetsInlineLimit: 0, // the content security policy admits no data: URLs but for images
    chunkSizeWarningLimit: 1000,
    rolldownOptions: { output: { codeSplitting: { groups: firstLoad } } },
  },
  server: { proxy: { '/v1': server, '/burano': server }, fs: { allow: ['.', '../../docs'] } },
  test: { include: ['*.test.ts', 'src/**/*.test.{ts,tsx}'] },
});

import { expect, test } from 'vitest';

import { readError, readFailure, Unreachable } from './client';

test('a refusal is read in all shapes, without markup', async () => {
  const read = async (body: string) => (await readError(new Response(body, { status: 400, statusText: 'Bad Request', headers: { 'x-openstack-request-id': 'req-1' } }))).message;
  expect(await read('{"code":"400","message":"it is no zip<br /><br />\\n\\n\\n","title":"Bad Request"}')).toBe('it is no zip');
  expect(await read('{"error":{"message":"it is there"},"explanation":"other words"}')).toBe('it is there');
  expect(await read('no JSON')).toBe('no JSON');
});

test('a page of a proxy is no message, but its title is', async () => {
  const page = await readError(new Response('<html>\r\n<head><title>502 Bad Gateway</title></head><body>nginx</body></html>', { status: 502, statusText: 'x' }));
  expect([page.status, page.message, page.isForeign]).toEqual([502, '502 Bad Gateway', true]);
  const bare = await readError(new Response('<h1>Wrong</h1>', { status: 504, statusText: 'Gateway Timeout' }));
  expect([bare.message, bare.isForeign]).toEqual(['Gateway Timeout', true]);
  expect((await readError(new Response('text', { status: 400 }))).isForeign).toBe(false);
});

test('a request without an answer is told from one that was ended', () => {
  expect(readFailure(new TypeError('Failed to fetch'))).toBeInstanceOf(Unreachable);
  const ended = new DOMException('ended', 'AbortError');
  expect(readFailure(ended)).toBe(ended);
});

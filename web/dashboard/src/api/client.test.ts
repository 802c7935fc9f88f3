import { expect, test } from 'vitest';

import { readError } from './client';

test('a refusal is read in all shapes, without markup', async () => {
  const read = async (body: string) => (await readError(new Response(body, { status: 400, statusText: 'Bad Request', headers: { 'x-openstack-request-id': 'req-1' } }))).message;
  expect(await read('{"code":"400","message":"it is no zip<br /><br />\\n\\n\\n","title":"Bad Request"}')).toBe('it is no zip');
  expect(await read('{"error":{"message":"it is there"},"explanation":"other words"}')).toBe('it is there');
  expect(await read('no JSON')).toBe('no JSON');
});

import { expect, test } from 'vitest';

import { failed, requestsOf, type Server } from './statistics';

const server = (rest: Partial<Server>) => ({ request_count: 0, error_count: 0, requests_per_tenant: '{}', ...rest }) as Server;

test('requests by project come with the most first', () => {
  expect(requestsOf(server({ requests_per_tenant: '{"a":1,"b":5}' }))).toEqual([
    ['b', 5],
    ['a', 1],
  ]);
  expect(requestsOf(server({ requests_per_tenant: 'no JSON' }))).toEqual([]);
});

test('a server without requests has no failed ones', () => {
  expect(failed(server({}))).toBe(0);
  expect(failed(server({ request_count: 8, error_count: 2 }))).toBe(25);
});

import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';

/** How long something that a class counts has been there. */
export interface Instance {
  active: boolean;
  duration: number;
  instance_id: string;
  type: number;
  type_name: string;
  type_title: string | null;
  unit_count: number | null;
}

export interface OfType {
  type: number;
  count: number;
  duration: number;
}

/** The requests that a server has answered since its start. */
export interface Server {
  id: number;
  host: string;
  request_count: number;
  error_count: number;
  average_response_time: number;
  requests_per_second: number;
  errors_per_second: number;
  cpu_count: number;
  cpu_percent: number;
  requests_per_tenant: string;
  updated: string;
}

const path = (environment: string) => ({ params: { path: { environment } } });

export const instancesQuery = (environment: string) =>
  queryOptions({
    queryKey: ['statistics', environment],
    queryFn: async () => ({
      types: (await answered(api.GET('/v1/environments/{environment}/instance-statistics/aggregated', path(environment)))) as unknown as OfType[],
      instances: (await answered(api.GET('/v1/environments/{environment}/instance-statistics/raw', path(environment)))) as unknown as Instance[],
    }),
    enabled: environment !== '',
  });

export const serversQuery = queryOptions({
  queryKey: ['statistics', 'servers'],
  queryFn: async () => (await answered(api.GET('/v1/stats'))) as unknown as Server[],
  refetchInterval: 5_000,
});

/** The requests by project, most first; the server gives them as JSON in a text. */
export function requestsOf(server: Server): [string, number][] {
  try {
    const counted = JSON.parse(server.requests_per_tenant) as Record<string, number>;
    return Object.entries(counted).sort((a, b) => b[1] - a[1]);
  } catch {
    return [];
  }
}

/** The share of requests that failed, in percent. */
export const failed = (server: Server): number => (server.request_count > 0 ? (server.error_count / server.request_count) * 100 : 0);

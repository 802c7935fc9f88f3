import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';

export interface Line {
  check: string;
  state: 'ok' | 'warning' | 'failed';
  text: string;
  remedy?: string;
}

/**
 * The server's checks of its settings and of the cloud. They take seconds, so they are requested once and again only
 * on demand.
 */
export const doctorQuery = queryOptions({
  queryKey: ['doctor'],
  queryFn: async (): Promise<Line[]> => (await answered(api.GET('/burano/v1/doctor'))).lines,
  staleTime: Infinity,
  retry: false,
});

const order: Line['state'][] = ['failed', 'warning', 'ok'];

/** The lines with the worst state first; lines of one state stay in their order. */
export const worstFirst = (lines: Line[]): Line[] => order.flatMap((state) => lines.filter((line) => line.state === state));

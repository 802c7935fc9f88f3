import { queryOptions } from '@tanstack/react-query';

import { answered, api } from '../api/client';

export interface Line {
  check: string;
  state: 'ok' | 'warning' | 'failed';
  text: string;
  remedy?: string;
}

/** What the server finds of its settings and of the cloud. It takes seconds, so it is asked for once and again only when somebody wants it. */
export const doctorQuery = queryOptions({
  queryKey: ['doctor'],
  queryFn: async (): Promise<Line[]> => (await answered(api.GET('/burano/v1/doctor'))).lines,
  staleTime: Infinity,
  retry: false,
});

const order: Line['state'][] = ['failed', 'warning', 'ok'];

/** The lines with what is bad first; those of one state stay in their order. */
export const worstFirst = (lines: Line[]): Line[] => order.flatMap((state) => lines.filter((line) => line.state === state));

import { QueryClient } from '@tanstack/react-query';

import { ApiError } from './client';

/** The server's data, for all pages. Refusals are not repeated; failures on the network are, twice. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status < 500),
    },
  },
});

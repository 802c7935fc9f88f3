import { QueryClient } from '@tanstack/react-query';

import { ApiError } from './client';

/** What has been read from the server, for all pages. Refusals are not asked again; what failed on the way is, twice. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status < 500),
    },
  },
});

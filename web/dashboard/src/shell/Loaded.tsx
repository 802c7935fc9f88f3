import { Skeleton } from '@patternfly/react-core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { useFirstText } from '../text';
import { Failure } from './Failure';

/** Shows the requested data once they are there; until then the progress, or the error. */
export function Loaded<T>({ query, children }: { query: UseQueryResult<T, Error>; children: (data: T) => ReactNode }) {
  const text = useFirstText();
  return (
    <>
      {query.error && <Failure error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
      {query.data !== undefined && children(query.data)}
    </>
  );
}

import { Content } from '@patternfly/react-core';
import { useQueries } from '@tanstack/react-query';

import { Failure } from '../shell/Failure';
import { Means } from '../draft/Means';
import { useText } from '../text';
import { deletionQuery } from './environments';

/** The losses when environments are deleted, and the fate of their clusters' volumes. */
export function DeletionMeans({ environments }: { environments: string[] }) {
  const words = useText().environments;
  const asked = useQueries({ queries: environments.map((environment) => ({ ...deletionQuery(environment), staleTime: 0 })) });
  const failed = asked.find((one) => one.error)?.error;
  return (
    <>
      <Content component="p">{words.deleteWhat}</Content>
      {failed && <Failure error={failed} />}
      <Means means={asked.flatMap((one) => one.data ?? [])} />
    </>
  );
}

import { useQuery } from '@tanstack/react-query';
import { linkOptions } from '@tanstack/react-router';

import { EnvironmentTrail } from '../environments/EnvironmentTrail';
import { useText } from '../text';
import { clusterQuery } from './clusters';

/** The trail to a workload or pod of a cluster: its environment, and the cluster's workloads. */
export function RunningTrail({ environment, cluster, here }: { environment: string; cluster: string; here: string }) {
  const text = useText();
  const asked = useQuery(clusterQuery(environment, cluster));
  return (
    <EnvironmentTrail
      environment={environment}
      stages={[
        {
          name: asked.data?.name ?? text.components.cluster,
          link: linkOptions({ to: '/environments/$environment/clusters/$object', params: { environment, object: cluster }, search: { tab: 'running' } }),
        },
      ]}
      here={here}
    />
  );
}

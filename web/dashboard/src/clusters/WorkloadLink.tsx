import { Link } from '@tanstack/react-router';

import { isWorkload } from './workloads';

interface Props {
  environment: string;
  cluster: string;
  workload: { kind: string; namespace: string; name: string };
  /** Whether its kind is said too. */
  withKind?: boolean;
}

/** Leads to a workload; of what is no workload that has a page there is the name. */
export function WorkloadLink({ environment, cluster, workload: { kind, namespace, name }, withKind = false }: Props) {
  const shown = withKind ? `${kind} ${name}` : name;
  if (!isWorkload(kind)) return <>{shown}</>;
  return (
    <Link to="/environments/$environment/clusters/$object/workloads/$namespace/$kind/$workload" params={{ environment, object: cluster, namespace, kind, workload: name }}>
      {shown}
    </Link>
  );
}

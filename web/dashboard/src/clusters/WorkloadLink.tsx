import { Link } from '@tanstack/react-router';

import { isWorkload } from './workloads';

interface Props {
  environment: string;
  cluster: string;
  workload: { kind: string; namespace: string; name: string };
  /** Whether its kind is shown too. */
  withKind?: boolean;
}

/** Leads to a workload; an object without a page has its name. */
export function WorkloadLink({ environment, cluster, workload: { kind, namespace, name }, withKind = false }: Props) {
  const shown = withKind ? `${kind} ${name}` : name;
  if (!isWorkload(kind)) return <>{shown}</>;
  return (
    <Link to="/environments/$environment/clusters/$object/workloads/$namespace/$kind/$workload" params={{ environment, object: cluster, namespace, kind, workload: name }}>
      {shown}
    </Link>
  );
}

import { Label } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon } from '@patternfly/react-icons';

/** States that pass by themselves. */
const passing = ['Pending', 'ContainerCreating', 'PodInitializing', 'Terminating', 'Running', 'Waiting'];

/** The state of a pod or container, in Kubernetes' word for it. */
export function PodState({ state, healthy }: { state: string; healthy: boolean }) {
  const soon = passing.includes(state);
  return (
    <Label isCompact status={healthy ? 'success' : soon ? 'info' : 'danger'} icon={healthy ? <CheckCircleIcon /> : soon ? <InProgressIcon /> : <ExclamationCircleIcon />}>
      {state}
    </Label>
  );
}

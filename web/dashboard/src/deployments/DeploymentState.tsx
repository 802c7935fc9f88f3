import { Label } from '@patternfly/react-core';
import { InProgressIcon } from '@patternfly/react-icons';

import { useText } from '../text';
import type { DeploymentState as State } from './deployments';

/** The state of a deployment in words, colour and shape. */
export function DeploymentState({ state }: { state: string | undefined }) {
  const text = useText();
  const name = text.deployments.states[state as State];
  if (!name) return null;
  const running = state?.startsWith('running') ?? false;
  const status = state?.endsWith('errors') ? 'danger' : state?.endsWith('warnings') ? 'warning' : running ? undefined : state === 'abandoned' ? 'info' : 'success';
  return (
    <Label variant="outline" status={status} color={status ? undefined : 'blue'} icon={running ? <InProgressIcon /> : undefined}>
      {name}
    </Label>
  );
}

import { Label, type LabelProps } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon, OutlinedCircleIcon, PencilAltIcon, TrashIcon } from '@patternfly/react-icons';
import type { ReactNode } from 'react';

import { useText } from '../text';
import type { ShownState } from './environments';

const looks: Record<ShownState, { status?: LabelProps['status']; color?: LabelProps['color']; icon: ReactNode }> = {
  new: { color: 'grey', icon: <OutlinedCircleIcon /> },
  ready: { status: 'success', icon: <CheckCircleIcon /> },
  pending: { color: 'purple', icon: <PencilAltIcon /> },
  deploying: { color: 'blue', icon: <InProgressIcon /> },
  'deploy failure': { status: 'danger', icon: <ExclamationCircleIcon /> },
  deleting: { color: 'grey', icon: <TrashIcon /> },
  'delete failure': { status: 'danger', icon: <ExclamationCircleIcon /> },
};

/** The state of an environment in words, colour and shape. */
export function StateLabel({ state }: { state: ShownState | undefined }) {
  const text = useText();
  if (!state) return null;
  const { icon, ...look } = looks[state];
  return (
    <Label variant="outline" icon={icon} {...look}>
      {text.environments.states[state]}
    </Label>
  );
}

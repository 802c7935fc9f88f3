import { Label, type LabelProps } from '@patternfly/react-core';
import {
  CheckCircleIcon,
  ExclamationCircleIcon,
  ExclamationTriangleIcon,
  InProgressIcon,
  MoonIcon,
  OutlinedCircleIcon,
  OutlinedQuestionCircleIcon,
  PencilAltIcon,
  TrashIcon,
} from '@patternfly/react-icons';
import type { ReactNode } from 'react';

import { useText } from '../text';
import type { ComponentState } from './environments';

const looks: Record<ComponentState, { status?: LabelProps['status']; color?: LabelProps['color']; icon: ReactNode }> = {
  failed: { status: 'danger', icon: <ExclamationCircleIcon /> },
  unhealthy: { status: 'danger', icon: <ExclamationCircleIcon /> },
  deleting: { color: 'grey', icon: <TrashIcon /> },
  deploying: { color: 'blue', icon: <InProgressIcon /> },
  'action failed': { status: 'warning', icon: <ExclamationTriangleIcon /> },
  asleep: { color: 'teal', icon: <MoonIcon /> },
  degraded: { status: 'warning', icon: <ExclamationTriangleIcon /> },
  'not deployed': { color: 'grey', icon: <OutlinedCircleIcon /> },
  unknown: { color: 'grey', icon: <OutlinedQuestionCircleIcon /> },
  changed: { color: 'purple', icon: <PencilAltIcon /> },
  ready: { status: 'success', icon: <CheckCircleIcon /> },
  new: { color: 'grey', icon: <OutlinedCircleIcon /> },
};

/** The state of an environment or a component in words, colour and shape. */
export function StateLabel({ state }: { state: ComponentState | undefined }) {
  const text = useText();
  if (!state) return null;
  const { icon, ...look } = looks[state];
  return (
    <Label variant="outline" icon={icon} {...look}>
      {text.environments.states[state]}
    </Label>
  );
}

import { Button, Label, Tooltip } from '@patternfly/react-core';
import { AngleDownIcon, AngleRightIcon } from '@patternfly/react-icons';
import { Td, Tr } from '@patternfly/react-table';

import { showSpan } from '../api/time';
import { useText } from '../text';
import type { Step } from './deployments';
import { lasted, type Group, type Place } from './groups';

interface GroupProps {
  group: Group;
  /** The time of the data, in milliseconds. */
  now: number;
  place: Place;
  isOpen: boolean;
  onToggle: () => void;
}

/** The row of a server, which opens and folds the rows of its steps. */
export function GroupRow({ group, now, place, isOpen, onToggle }: GroupProps) {
  const words = useText().deployments;
  const { name, steps, failed, isRunning } = group;
  return (
    <Tr>
      <Td dataLabel={words.step} colSpan={3} className="burano-breaks">
        <Button variant="link" isInline className="burano-group" icon={isOpen ? <AngleDownIcon /> : <AngleRightIcon />} aria-expanded={isOpen} onClick={onToggle}>
          {name}
        </Button>{' '}
        {failed > 0 ? (
          <Label isCompact status="danger">
            {words.failedOf(failed, steps.length)}
          </Label>
        ) : (
          <small>{words.stepsOf(steps.length)}</small>
        )}
      </Td>
      <Td dataLabel={words.took} modifier="nowrap">
        {showSpan(lasted(steps, now))}
      </Td>
      <Td>{!isOpen && <Bar look={failed > 0 ? 'failed' : isRunning ? 'running' : 'done'} place={place} />}</Td>
    </Tr>
  );
}

interface StepProps {
  step: Step;
  now: number;
  place: Place;
  /** The name of its object. */
  called: string;
  /** The names of the steps that it waited for. */
  after: string[];
  /** It decided how long the deployment took. */
  isDecisive: boolean;
  onPoint: (step: string) => void;
}

export function StepRow({ step, now, place, called, after, isDecisive, onPoint }: StepProps) {
  const words = useText().deployments;
  const took = showSpan(lasted([step], now));
  return (
    <Tr onMouseEnter={() => onPoint(step.id ?? '')} onMouseLeave={() => onPoint('')}>
      <Td dataLabel={words.step} className="burano-breaks">
        {step.name}{' '}
        {isDecisive && (
          <Label isCompact variant="outline" title={words.decidesWhat}>
            {words.decides}
          </Label>
        )}
        {step.error && <small className="burano-step-error">{step.error}</small>}
      </Td>
      <Td dataLabel={words.object} className="burano-breaks">
        {called}
      </Td>
      <Td dataLabel={words.waitedFor} className="burano-breaks">
        <After names={after} />
      </Td>
      <Td dataLabel={words.took} modifier="nowrap">
        {took}
      </Td>
      <Td>
        <Tooltip content={`${step.name}: ${took}`}>
          <Bar look={step.error ? 'failed' : step.finished ? 'done' : 'running'} place={place} step={step.id} />
        </Tooltip>
      </Td>
    </Tr>
  );
}

interface BarProps {
  look: 'done' | 'running' | 'failed';
  place: Place;
  /** The id of the step to whose bar lines lead. */
  step?: string;
}

/** A bar on the line of time. */
const Bar = ({ look, place, step, ...hover }: BarProps) => (
  <svg {...hover} className="burano-step" data-step={step} width="100%" height="14" aria-hidden>
    <rect className={`burano-step-${look}`} x={`${place.from}%`} width={`${place.width}%`} height="14" rx="3" />
  </svg>
);

/** How many steps are named that one waited for. */
const most = 2;

function After({ names }: { names: string[] }) {
  const words = useText().deployments;
  if (names.length <= most) return <small>{names.join(', ')}</small>;
  return (
    <Tooltip content={names.join(', ')}>
      <small tabIndex={0}>{words.andMore(names.slice(0, most).join(', '), names.length - most)}</small>
    </Tooltip>
  );
}

import { Content, FormSelect, FormSelectOption, Label, Tooltip } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef, useState } from 'react';

import { showSpan } from '../api/time';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { criticalPath, dependencies, placed, stepsQuery, type Step } from './deployments';
import { Links } from './Links';

/**
 * The steps of a deployment on a line of time with their dependencies, growing while they run. names are the names of
 * objects, by id.
 */
export function Steps({ deployment, running, names }: { deployment: string; running: boolean; names: Map<string, string> }) {
  const text = useText();
  const words = text.deployments;
  const steps = useQuery(stepsQuery(deployment, running));
  const [object, setObject] = useState('');
  const [active, setActive] = useState('');
  const lines = useRef<HTMLDivElement>(null);
  const linked = useMemo(() => dependencies(steps.data ?? []), [steps.data]);
  if (steps.error) return <Failure error={steps.error} onRetry={() => void steps.refetch()} />;
  const list = steps.data ?? [];
  if (list.length === 0) return <Content component="p">{words.noSteps}</Content>;
  const called = (step: Step) => names.get(step.object ?? '') || (step.class?.split('.').pop() ?? '');
  const objects = new Map(list.map((step) => [step.object ?? '', called(step)]));
  const places = new Map(placed(list, steps.dataUpdatedAt).map((place, i) => [list[i]?.id, place]));
  const byId = new Map(list.map((step) => [step.id ?? '', step]));
  const decides = running ? new Set<string>() : criticalPath(list);
  return (
    <>
      {objects.size > 1 && (
        <FormSelect aria-label={words.object} value={object} onChange={(_event, value) => setObject(value)} className="burano-narrow">
          <FormSelectOption value="" label={words.allObjects} />
          {[...objects].map(([id, name]) => (
            <FormSelectOption key={id} value={id} label={name} />
          ))}
        </FormSelect>
      )}
      <div ref={lines} className="burano-linked">
        <Table aria-label={words.steps} variant="compact" gridBreakPoint="grid-md">
          <Thead>
            <Tr>
              <Th width={20}>{words.step}</Th>
              <Th width={15}>{words.object}</Th>
              <Th width={20}>{words.waitedFor}</Th>
              <Th width={10}>{words.took}</Th>
              <Th screenReaderText={words.steps} />
            </Tr>
          </Thead>
          <Tbody>
            {list
              .filter((step) => object === '' || step.object === object)
              .map((step) => {
                const seconds = Math.max(step.seconds ?? (steps.dataUpdatedAt - Date.parse(step.started ?? '')) / 1000, 0);
                return (
                  <Tr
                    key={step.id}
                    onMouseEnter={() => setActive(step.id ?? '')}
                    onMouseLeave={() => setActive('')}
                  >
                    <Td dataLabel={words.step} className="burano-breaks">
                      {step.name}{' '}
                      {decides.has(step.id ?? '') && (
                        <Label isCompact variant="outline" title={words.decidesWhat}>
                          {words.decides}
                        </Label>
                      )}
                    </Td>
                    <Td dataLabel={words.object} className="burano-breaks">
                      {called(step)}
                    </Td>
                    <Td dataLabel={words.waitedFor} className="burano-breaks">
                      <After names={(step.waits_for ?? []).map((id) => byId.get(id)?.name ?? '').filter(Boolean)} />
                    </Td>
                    <Td dataLabel={words.took} modifier="nowrap">
                      {showSpan(seconds)}
                    </Td>
                    <Td>
                      <Tooltip content={step.error || `${step.name}: ${showSpan(seconds)}`}>
                        <svg className="burano-step" data-step={step.id} width="100%" height="14" role="img" aria-label={step.error ?? undefined} aria-hidden={!step.error}>
                          <rect
                            className={step.error ? 'burano-step-failed' : step.finished ? 'burano-step-done' : 'burano-step-running'}
                            x={`${places.get(step.id)?.from ?? 0}%`}
                            width={`${places.get(step.id)?.width ?? 0}%`}
                            height="14"
                            rx="3"
                          />
                        </svg>
                      </Tooltip>
                    </Td>
                  </Tr>
                );
              })}
          </Tbody>
        </Table>
        <Links key={object} within={lines} dependencies={linked} path={decides} active={active} />
      </div>
    </>
  );
}

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

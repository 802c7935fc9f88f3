import { Content, Tooltip } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';

import { showSpan } from '../api/time';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { placed, stepsQuery } from './deployments';

/** The steps of a deployment on a line of time, growing while they run. names are what people call objects, by id. */
export function Steps({ deployment, running, names }: { deployment: string; running: boolean; names: Map<string, string> }) {
  const text = useText();
  const words = text.deployments;
  const steps = useQuery(stepsQuery(deployment, running));
  if (steps.error) return <Failure error={steps.error} onRetry={() => void steps.refetch()} />;
  const list = steps.data ?? [];
  if (list.length === 0) return <Content component="p">{words.noSteps}</Content>;
  const places = placed(list, steps.dataUpdatedAt);
  return (
    <Table aria-label={words.steps} variant="compact" gridBreakPoint="grid-md">
      <Thead>
        <Tr>
          <Th width={20}>{words.step}</Th>
          <Th width={20}>{words.object}</Th>
          <Th width={10}>{words.took}</Th>
          <Th screenReaderText={words.steps} />
        </Tr>
      </Thead>
      <Tbody>
        {list.map((step, i) => {
          const seconds = step.seconds ?? (steps.dataUpdatedAt - Date.parse(step.started ?? '')) / 1000;
          return (
            <Tr key={`${step.object} ${step.name} ${step.started}`}>
              <Td dataLabel={words.step} className="burano-breaks">
                {step.name}
              </Td>
              <Td dataLabel={words.object} className="burano-breaks">
                {names.get(step.object ?? '') ?? step.class?.split('.').pop()}
              </Td>
              <Td dataLabel={words.took} modifier="nowrap">
                {showSpan(Math.max(seconds, 0))}
              </Td>
              <Td>
                <Tooltip content={step.error || `${step.name}: ${showSpan(Math.max(seconds, 0))}`}>
                  <svg className="burano-step" width="100%" height="14" role="img" aria-label={step.error ?? undefined} aria-hidden={!step.error}>
                    <rect
                      className={step.error ? 'burano-step-failed' : step.finished ? 'burano-step-done' : 'burano-step-running'}
                      x={`${places[i]?.from ?? 0}%`}
                      width={`${places[i]?.width ?? 0}%`}
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
  );
}

import { Button, Content, FormSelect, FormSelectOption, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { Table, Tbody, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef, useState } from 'react';

import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { criticalPath, dependencies, placed, stepsQuery, type Step } from './deployments';
import { groupsOf, isOpenAtFirst, spanOf, type Group } from './groups';
import { Links } from './Links';
import { GroupRow, StepRow } from './StepRows';

/**
 * The steps of a deployment on a line of time with their dependencies, growing while they run, folded by server at its
 * end. names are the names of objects, by id.
 */
export function Steps({ deployment, running, names }: { deployment: string; running: boolean; names: Map<string, string> }) {
  const words = useText().deployments;
  const steps = useQuery(stepsQuery(deployment, running));
  const [object, setObject] = useState('');
  const [active, setActive] = useState('');
  const [decided, setDecided] = useState<ReadonlyMap<string, boolean>>(new Map());
  const lines = useRef<HTMLDivElement>(null);
  const linked = useMemo(() => dependencies(steps.data ?? []), [steps.data]);
  if (steps.error) return <Failure error={steps.error} onRetry={() => void steps.refetch()} />;
  const list = steps.data ?? [];
  if (list.length === 0) return <Content component="p">{words.noSteps}</Content>;
  const now = steps.dataUpdatedAt;
  const called = (step: Step) => names.get(step.object ?? '') || (step.class?.split('.').pop() ?? '');
  const objects = new Map(list.map((step) => [step.object ?? '', called(step)]));
  const places = new Map(placed(list, now).map((place, i) => [list[i]?.id, place]));
  const placeOf = (step: Step) => places.get(step.id) ?? { from: 0, width: 0 };
  const byId = new Map(list.map((step) => [step.id ?? '', step]));
  const decides = running ? new Set<string>() : criticalPath(list);
  const shown = list.filter((step) => object === '' || step.object === object);
  const groups = groupsOf(shown, called);
  const isOpen = (group: Group) => decided.get(group.name) ?? isOpenAtFirst(group, groups, running);
  const allOpen = groups.every(isOpen);
  return (
    <>
      {(objects.size > 1 || groups.length > 1) && (
        <Toolbar>
          <ToolbarContent>
            {objects.size > 1 && (
              <ToolbarItem>
                <FormSelect aria-label={words.object} value={object} onChange={(_event, value) => setObject(value)} className="burano-narrow">
                  <FormSelectOption value="" label={words.allObjects} />
                  {[...objects].map(([id, name]) => (
                    <FormSelectOption key={id} value={id} label={name} />
                  ))}
                </FormSelect>
              </ToolbarItem>
            )}
            {groups.length > 1 && (
              <ToolbarItem>
                <Button variant="link" onClick={() => setDecided(new Map(groups.map((group) => [group.name, !allOpen])))}>
                  {allOpen ? words.foldAll : words.openAll}
                </Button>
              </ToolbarItem>
            )}
          </ToolbarContent>
        </Toolbar>
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
          {groups.map((group) => (
            <Tbody key={group.name}>
              {groups.length > 1 && (
                <GroupRow
                  group={group}
                  now={now}
                  place={spanOf(group.steps.map(placeOf))}
                  isOpen={isOpen(group)}
                  onToggle={() => setDecided(new Map(decided).set(group.name, !isOpen(group)))}
                />
              )}
              {isOpen(group) &&
                group.steps.map((step) => (
                  <StepRow
                    key={step.id}
                    step={step}
                    now={now}
                    place={placeOf(step)}
                    called={called(step)}
                    after={(step.waits_for ?? []).map((id) => byId.get(id)?.name ?? '').filter(Boolean)}
                    isDecisive={decides.has(step.id ?? '')}
                    onPoint={setActive}
                  />
                ))}
            </Tbody>
          ))}
        </Table>
        <Links key={object} within={lines} dependencies={linked} path={decides} active={active} />
      </div>
    </>
  );
}

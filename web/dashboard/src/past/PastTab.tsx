import { EmptyState, EmptyStateBody, Form, FormGroup, FormSelect, FormSelectOption, Label, Skeleton } from '@patternfly/react-core';
import { HistoryIcon } from '@patternfly/react-icons';
import { ActionsColumn, Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';

import { showTime } from '../api/time';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { Difference } from './Difference';
import { GoBack } from './GoBack';
import { lastTwo, sourceOf, statesQuery, type State } from './past';

/** The states of an environment, the difference of two, and the rollback to one. */
export function PastTab({ environment, user, isBusy }: { environment: string; user: string; isBusy: boolean }) {
  const { text } = useLanguage();
  const words = text.past;
  const states = useQuery(statesQuery(environment));
  const [back, setBack] = useState<number | null>(null);
  if (states.error) return <Failure error={states.error} onRetry={() => void states.refetch()} />;
  if (!states.data) return <Skeleton height="12rem" screenreaderText={text.shell.loading} />;
  const list = states.data.states;
  if (list.length === 0) {
    return (
      <EmptyState titleText={words.none} icon={HistoryIcon} headingLevel="h2">
        <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
      </EmptyState>
    );
  }
  return (
    <>
      {list.length > 1 && <Comparison key={list[0]?.number} environment={environment} states={list} />}
      <States states={list} present={states.data.present} isBusy={isBusy} onBack={setBack} />
      {back !== null && <GoBack environment={environment} user={user} state={back} onClose={() => setBack(null)} />}
    </>
  );
}

function States({ states, present, isBusy, onBack }: { states: State[]; present: number; isBusy: boolean; onBack: (state: number) => void }) {
  const { text, language } = useLanguage();
  const words = text.past;
  return (
    <Table aria-label={words.title} variant="compact">
      <Thead>
        <Tr>
          <Th>{words.state}</Th>
          <Th>{words.time}</Th>
          <Th>{words.by}</Th>
          <Th>{words.from}</Th>
          <Th>{words.images}</Th>
          <Th screenReaderText={words.actions} />
        </Tr>
      </Thead>
      <Tbody>
        {states.map((state) => (
          <Tr key={state.number}>
            <Td dataLabel={words.state}>
              {state.number} {state.number === present && <Label isCompact>{words.present}</Label>}
            </Td>
            <Td dataLabel={words.time}>{showTime(state.created, language)}</Td>
            <Td dataLabel={words.by}>{state.user_name || state.user_id}</Td>
            <Td dataLabel={words.from} className="burano-breaks">
              {sourceOf(state, words)}
            </Td>
            <Td dataLabel={words.images} className="burano-breaks">
              {state.images.map((image) => image.name).join(', ')}
            </Td>
            <Td isActionCell>
              <ActionsColumn
                items={[{ title: words.back, onClick: () => onBack(state.number), isDisabled: isBusy || state.number === present }]}
                popperProps={{ appendTo: 'inline' }}
              />
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

/** Two states side by side: at first the last two. */
function Comparison({ environment, states }: { environment: string; states: State[] }) {
  const { text, language } = useLanguage();
  const words = text.past;
  const id = useId();
  const [[before, after], setTwo] = useState(() => lastTwo(states));
  const options = states.map((state) => (
    <FormSelectOption key={state.number} value={state.number} label={words.option(state.number, showTime(state.created, language))} />
  ));
  return (
    <>
      <Form className="burano-compare" onSubmit={(event) => event.preventDefault()}>
        <FormGroup label={words.earlier} fieldId={`${id}-before`}>
          <FormSelect id={`${id}-before`} value={before} onChange={(_event, value) => setTwo([Number(value), after])}>
            {options}
          </FormSelect>
        </FormGroup>
        <FormGroup label={words.later} fieldId={`${id}-after`}>
          <FormSelect id={`${id}-after`} value={after} onChange={(_event, value) => setTwo([before, Number(value)])}>
            {options}
          </FormSelect>
        </FormGroup>
      </Form>
      <Difference environment={environment} from={before} to={after} />
    </>
  );
}

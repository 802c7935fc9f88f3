import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  PageSection,
  Pagination,
  SearchInput,
  Skeleton,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core';
import { CubesIcon, SearchIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr, type ThProps } from '@patternfly/react-table';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';

import { parseTime, showAge, showTime } from '../api/time';
import { FindingBadge } from '../findings/FindingBadge';
import { projectFindingsQuery, worst } from '../findings/findings';
import { useSession } from '../session/session';
import { Confirm } from '../shell/Confirm';
import { ChoiceCell, ChoiceOfAll } from '../shell/Choice';
import { Failure } from '../shell/Failure';
import { Heading } from '../shell/Heading';
import { RowActions } from '../shell/RowActions';
import { useLanguage } from '../text';
import { BulkActions, RefusedList } from './BulkActions';
import type { Refused } from './bulk';
import { CreateDialog } from './CreateDialog';
import { DeleteDialog } from './DeleteDialog';
import { deleteEnvironment, environmentsQuery, stateOrder, type Overview } from './environments';
import { listsAll } from './projects';
import { StateLabel } from './StateLabel';

const columns = ['name', 'state', 'created', 'updated'] as const;

type Order = { column: (typeof columns)[number]; direction: 'asc' | 'desc' };

/** Sorts by a column: times by when they are, states with the worst first, names as the viewer's language does. */
export function sorted(list: Overview[], { column, direction }: Order, language: string): Overview[] {
  const compare = (a: Overview, b: Overview) => {
    if (column === 'state') return stateOrder.indexOf(a.state) - stateOrder.indexOf(b.state);
    if (column === 'name') return a.name.localeCompare(b.name, language, { numeric: true });
    return parseTime(a[column] ?? '').getTime() - parseTime(b[column] ?? '').getTime();
  };
  return list.toSorted((a, b) => (direction === 'asc' ? compare(a, b) : compare(b, a)));
}

/** All environments of the project. */
export function EnvironmentsPage() {
  const { text, language } = useLanguage();
  const words = text.environments;
  const navigate = useNavigate();
  const client = useQueryClient();
  const mayList = useSession().rules?.includes(listsAll) ?? false;
  const environments = useQuery(environmentsQuery);
  const marks = worst(useQuery(projectFindingsQuery).data ?? []);
  const [filter, setFilter] = useState('');
  const [order, setOrder] = useState<Order>({ column: 'created', direction: 'desc' });
  const [page, setPage] = useState(1);
  const [perPage, setPerPage] = useState(20);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<Refused[]>([]);
  const [dialog, setDialog] = useState<{ kind: 'create' } | { kind: 'delete' | 'abandon'; of: Overview } | null>(null);

  const wanted = filter.toLowerCase();
  const found = sorted((environments.data ?? []).filter((one) => one.name?.toLowerCase().includes(wanted)), order, language);
  const shown = found.slice((page - 1) * perPage, page * perPage);
  const sort = (index: number): ThProps['sort'] => ({
    sortBy: { index: columns.indexOf(order.column) + 1, direction: order.direction },
    onSort: (_event, at, direction) => setOrder({ column: columns[at - 1] ?? 'name', direction }),
    columnIndex: index + 1,
  });
  const choose = (list: Overview[], on: boolean) =>
    setChosen((now) => {
      const next = new Set(now);
      for (const one of list) if (on) next.add(one.id ?? ''); else next.delete(one.id ?? '');
      return next;
    });
  const picked = (environments.data ?? []).filter((one) => chosen.has(one.id ?? ''));
  const create = <Button onClick={() => setDialog({ kind: 'create' })}>{words.create}</Button>;
  const renew = () => {
    setDialog(null);
    void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
  };

  return (
    <>
      <Heading title={words.title}>
        {mayList && <Link to="/environments/all">{words.toAll}</Link>}
      </Heading>
      <PageSection isFilled>
        {environments.error && <Failure error={environments.error} onRetry={() => void environments.refetch()} />}
        <RefusedList refused={refused} onClose={() => setRefused([])} />
        {environments.isPending && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
        {environments.data?.length === 0 && (
          <EmptyState titleText={words.none} icon={CubesIcon} headingLevel="h2">
            <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
            <EmptyStateFooter>
              <EmptyStateActions>
                {create}
                <Button variant="link" onClick={() => void navigate({ to: '/catalog' })}>
                  {text.shell.toStart}
                </Button>
              </EmptyStateActions>
            </EmptyStateFooter>
          </EmptyState>
        )}
        {(environments.data?.length ?? 0) > 0 && (
          <>
            <Toolbar clearAllFilters={() => setFilter('')}>
              <ToolbarContent>
                <ToolbarItem>
                  <SearchInput
                    aria-label={words.filter}
                    placeholder={words.filter}
                    value={filter}
                    onChange={(_event, value) => {
                      setFilter(value);
                      setPage(1);
                    }}
                    onClear={() => setFilter('')}
                  />
                </ToolbarItem>
                <ToolbarItem>{create}</ToolbarItem>
                {picked.length > 0 && (
                  <BulkActions
                    chosen={picked}
                    onDone={(problems) => {
                      setRefused(problems);
                      setChosen(new Set(problems.map((each) => each.environment.id ?? '')));
                    }}
                  />
                )}
                <ToolbarItem variant="pagination" align={{ default: 'alignEnd' }}>
                  <Pagination
                    isCompact
                    itemCount={found.length}
                    page={page}
                    perPage={perPage}
                    onSetPage={(_event, next) => setPage(next)}
                    onPerPageSelect={(_event, size) => {
                      setPerPage(size);
                      setPage(1);
                    }}
                  />
                </ToolbarItem>
              </ToolbarContent>
            </Toolbar>
            {found.length === 0 ? (
              <EmptyState titleText={words.noMatch} icon={SearchIcon} headingLevel="h2" variant="sm">
                <Button variant="link" onClick={() => setFilter('')}>
                  {words.clear}
                </Button>
              </EmptyState>
            ) : (
              <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-lg">
                <Thead>
                  <Tr>
                    <ChoiceOfAll label={words.chooseAll} isChosen={shown.every((one) => chosen.has(one.id ?? ''))} onChoose={(on) => choose(shown, on)} />
                    {columns.map((column, index) => (
                      <Th key={column} sort={sort(index)}>
                        {words[column]}
                      </Th>
                    ))}
                    <Th screenReaderText={words.actions} />
                  </Tr>
                </Thead>
                <Tbody>
                  {shown.map((one) => (
                    <Tr key={one.id}>
                      <ChoiceCell label={words.choose(one.name ?? '')} isChosen={chosen.has(one.id ?? '')} onChoose={(on) => choose([one], on)} />
                      <Td dataLabel={words.name} className="burano-breaks">
                        <Link to="/environments/$environment" params={{ environment: one.id ?? '' }}>
                          {one.name}
                        </Link>
                      </Td>
                      <Td dataLabel={words.state}>
                        <StateLabel state={one.state} /> <FindingBadge found={marks.get(one.id ?? '')} />
                      </Td>
                      <Td dataLabel={words.created} modifier="nowrap" title={showTime(one.created, language)}>
                        {showAge(one.created, language)}
                      </Td>
                      <Td dataLabel={words.updated} modifier="nowrap" title={showTime(one.updated, language)}>
                        {showAge(one.updated, language)}
                      </Td>
                      <Td isActionCell>
                        <RowActions
                          of={one.name ?? ''}
                          items={[
                            { title: words.delete, onClick: () => setDialog({ kind: 'delete', of: one }), isDisabled: one.status === 'deleting' },
                            { title: words.abandon, onClick: () => setDialog({ kind: 'abandon', of: one }) },
                          ]}
                        />
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )}
          </>
        )}
      </PageSection>
      {dialog?.kind === 'create' && (
        <CreateDialog
          onDone={(made) => {
            renew();
            void navigate({ to: '/environments/$environment', params: { environment: made.id ?? '' } });
          }}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog?.kind === 'delete' && (
        <DeleteDialog
          title={words.deleteTitle(dialog.of.name ?? '')}
          of={[dialog.of]}
          send={() => deleteEnvironment(dialog.of.id ?? '')}
          onDone={renew}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog?.kind === 'abandon' && (
        <Confirm
          title={words.abandonTitle(dialog.of.name ?? '')}
          what={words.abandonWhat}
          action={words.abandon}
          send={() => deleteEnvironment(dialog.of.id ?? '', true)}
          onDone={renew}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  );
}

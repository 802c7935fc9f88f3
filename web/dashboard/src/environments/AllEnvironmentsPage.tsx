import {
  Button,
  EmptyState,
  FormSelect,
  FormSelectOption,
  PageSection,
  Pagination,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core';
import { SearchIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';

import { showAge, showTime } from '../api/time';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import type { Overview } from './environments';
import { foreignQuery, projectNamesQuery } from './projects';
import { StateLabel } from './StateLabel';

/** The environments of all projects, to look at: only their projects' members change them. */
export function AllEnvironmentsPage() {
  const { text } = useLanguage();
  const words = text.environments;
  const { project } = useSearch({ from: '/environments/all' });
  const navigate = useNavigate();
  const names = useQuery(projectNamesQuery).data ?? new Map<string, string>();
  const environments = useQuery(foreignQuery(project));
  const [filter, setFilter] = useState('');
  const wanted = filter.toLowerCase();
  return (
    <>
      <Heading title={words.allTitle} what={words.allWhat} />
      <PageSection isFilled>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <SearchInput aria-label={words.filter} placeholder={words.filter} value={filter} onChange={(_event, value) => setFilter(value)} onClear={() => setFilter('')} />
            </ToolbarItem>
            <ToolbarItem>
              <FormSelect
                aria-label={words.project}
                value={project ?? ''}
                onChange={(_event, value) => void navigate({ to: '.', search: { project: value || undefined }, replace: true })}
              >
                <FormSelectOption value="" label={words.allProjects} />
                {[...names].map(([id, name]) => (
                  <FormSelectOption key={id} value={id} label={name} />
                ))}
              </FormSelect>
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
        <Loaded query={environments}>
          {(list) => {
            const found = list.filter((one) => one.name?.toLowerCase().includes(wanted)).toReversed(); // the newest first
            if (found.length > 0) return <List key={`${project} ${wanted}`} list={found} names={names} />;
            return (
              <EmptyState titleText={words.noMatch} icon={SearchIcon} headingLevel="h2" variant="sm">
                {filter && (
                  <Button variant="link" onClick={() => setFilter('')}>
                    {words.clear}
                  </Button>
                )}
              </EmptyState>
            );
          }}
        </Loaded>
      </PageSection>
    </>
  );
}

function List({ list, names }: { list: Overview[]; names: Map<string, string> }) {
  const { text, language } = useLanguage();
  const words = text.environments;
  const [page, setPage] = useState(1);
  const [perPage, setPerPage] = useState(20);
  return (
    <>
      <Table aria-label={words.allTitle} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th width={30}>{words.name}</Th>
            <Th width={20}>{words.project}</Th>
            <Th>{words.state}</Th>
            <Th>{words.created}</Th>
            <Th>{words.updated}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {list.slice((page - 1) * perPage, page * perPage).map((one) => (
            <Tr key={one.id}>
              <Td dataLabel={words.name} className="burano-breaks">
                <Link to="/environments/$environment" params={{ environment: one.id ?? '' }}>
                  {one.name}
                </Link>
              </Td>
              <Td dataLabel={words.project} className="burano-breaks">
                {names.get(one.tenant_id ?? '') ?? one.tenant_id}
              </Td>
              <Td dataLabel={words.state}>
                <StateLabel state={one.state} />
              </Td>
              <Td dataLabel={words.created} modifier="nowrap" title={showTime(one.created, language)}>
                {showAge(one.created, language)}
              </Td>
              <Td dataLabel={words.updated} modifier="nowrap" title={showTime(one.updated, language)}>
                {showAge(one.updated, language)}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <Pagination
        itemCount={list.length}
        page={page}
        perPage={perPage}
        variant="bottom"
        onSetPage={(_event, next) => setPage(next)}
        onPerPageSelect={(_event, size) => {
          setPerPage(size);
          setPage(1);
        }}
      />
    </>
  );
}

import {
  Checkbox,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Button,
  FormSelect,
  FormSelectOption,
  SearchInput,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core';
import { CubesIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';

import { showAge, showTime } from '../api/time';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { PodTable } from './PodTable';
import type { ClusterLook } from './look';
import { chosen, namespacesOf, runningQuery, type Running as Found, type Workload } from './running';
import { WorkloadLink } from './WorkloadLink';

/** The workloads and pods of a cluster. */
export function WhatRuns({ environment, cluster }: { environment: string; cluster: string }) {
  const running = useQuery(runningQuery(environment, cluster));
  return <Loaded query={running}>{(found) => <Lists found={found} environment={environment} cluster={cluster} />}</Loaded>;
}

function Lists({ found, environment, cluster }: { found: Found; environment: string; cluster: string }) {
  const { text } = useLanguage();
  const words = text.running;
  const look = useSearch({ from: '/environments/$environment/clusters/$object' });
  const navigate = useNavigate();
  const change = (part: ClusterLook) => void navigate({ to: '.', search: { ...look, ...part }, replace: true });
  const shown = useMemo(() => chosen(found, look), [found, look]);
  const nothing = shown.pods.length === 0 && shown.workloads.length === 0;
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem>
            <SearchInput
              aria-label={words.find}
              placeholder={words.find}
              value={look.search ?? ''}
              onChange={(_event, value) => change({ search: value || undefined })}
              onClear={() => change({ search: undefined })}
            />
          </ToolbarItem>
          <ToolbarItem>
            <FormSelect aria-label={words.namespace} value={look.namespace ?? ''} onChange={(_event, value) => change({ namespace: value || undefined })}>
              <FormSelectOption value="" label={words.allNamespaces} />
              {namespacesOf(found).map((namespace) => (
                <FormSelectOption key={namespace} value={namespace} label={namespace} />
              ))}
            </FormSelect>
          </ToolbarItem>
          <ToolbarItem alignSelf="center">
            <Checkbox id="running-ill" label={words.onlyIll} isChecked={Boolean(look.ill)} onChange={(_event, checked) => change({ ill: checked || undefined })} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {nothing ? (
        <EmptyState titleText={found.pods.length === 0 ? words.none : words.noneFound} icon={CubesIcon} headingLevel="h2">
          <EmptyStateBody>{found.pods.length === 0 ? words.noneWhat : words.noneFoundWhat}</EmptyStateBody>
          {found.pods.length > 0 && (
            <EmptyStateFooter>
              <EmptyStateActions>
                <Button variant="link" onClick={() => change({ search: undefined, namespace: undefined, ill: undefined })}>
                  {words.showAll}
                </Button>
              </EmptyStateActions>
            </EmptyStateFooter>
          )}
        </EmptyState>
      ) : (
        <>
          <Workloads list={shown.workloads} environment={environment} cluster={cluster} />
          {shown.pods.length > 0 && (
            <PodTable key={`${look.search}/${look.namespace}/${look.ill}`} list={shown.pods} environment={environment} cluster={cluster} />
          )}
        </>
      )}
    </>
  );
}

function Workloads({ list, environment, cluster }: { list: Workload[]; environment: string; cluster: string }) {
  const { text, language } = useLanguage();
  const words = text.running;
  if (list.length === 0) return null;
  return (
    <section className="burano-spaced">
      <Title headingLevel="h2">{words.workloads(list.length)}</Title>
      <Table aria-label={words.workloads(list.length)} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th>{words.name}</Th>
            <Th>{words.kind}</Th>
            <Th>{words.namespace}</Th>
            <Th>{words.ready}</Th>
            <Th width={40}>{words.images}</Th>
            <Th modifier="nowrap">{words.age}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {list.map((one) => (
            <Tr key={`${one.kind}/${one.namespace}/${one.name}`}>
              <Td dataLabel={words.name} className="burano-breaks">
                <WorkloadLink environment={environment} cluster={cluster} workload={one} />
              </Td>
              <Td dataLabel={words.kind}>{one.kind}</Td>
              <Td dataLabel={words.namespace}>{one.namespace}</Td>
              <Td dataLabel={words.ready}>{words.of(one.ready, one.wanted)}</Td>
              <Td dataLabel={words.images} className="burano-breaks">
                {one.images.join(', ')}
              </Td>
              <Td dataLabel={words.age} modifier="nowrap" title={showTime(one.created, language)}>
                {showAge(one.created, language)}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </section>
  );
}

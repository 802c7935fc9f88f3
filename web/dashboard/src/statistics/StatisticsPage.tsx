import { Content, EmptyState, EmptyStateBody, FormSelect, FormSelectOption, PageSection, Title, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { ChartBarIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';

import { showAge, showSpan, showTime } from '../api/time';
import { environmentsQuery } from '../environments/environments';
import { useSession } from '../session/session';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { failed, instancesQuery, requestsOf, serversQuery, type Server } from './statistics';

/** The ages of environments' objects, and the servers' answered requests. */
export function StatisticsPage() {
  const words = useLanguage().text.statistics;
  const navigate = useNavigate();
  const { environment: wanted } = useSearch({ from: '/statistics' });
  const environments = useQuery(environmentsQuery);
  const list = environments.data ?? [];
  const environment = wanted ?? list[0]?.id ?? '';
  return (
    <>
      <Heading title={words.title} help="api" />
      <PageSection>
        <Title headingLevel="h2">{words.instances}</Title>
        <Content component="p">{words.instancesWhat}</Content>
        <Loaded query={environments}>
          {() =>
            environment === '' ? (
              <EmptyState titleText={words.noEnvironments} icon={ChartBarIcon} headingLevel="h3" variant="sm">
                <EmptyStateBody>{words.noInstancesWhat}</EmptyStateBody>
              </EmptyState>
            ) : (
              <>
                <Toolbar>
                  <ToolbarContent>
                    <ToolbarItem>
                      <FormSelect
                        aria-label={words.environment}
                        value={environment}
                        onChange={(_event, id) => void navigate({ to: '.', search: { environment: id }, replace: true })}
                      >
                        {list.map((one) => (
                          <FormSelectOption key={one.id} value={one.id} label={one.name ?? ''} />
                        ))}
                      </FormSelect>
                    </ToolbarItem>
                  </ToolbarContent>
                </Toolbar>
                <Instances environment={environment} />
              </>
            )
          }
        </Loaded>
      </PageSection>
      <PageSection isFilled>
        <Title headingLevel="h2">{words.servers}</Title>
        <Content component="p">{words.serversWhat}</Content>
        <Servers />
      </PageSection>
    </>
  );
}

function Instances({ environment }: { environment: string }) {
  const words = useLanguage().text.statistics;
  const statistics = useQuery(instancesQuery(environment));
  return (
    <Loaded query={statistics}>
      {({ types, instances }) =>
        instances.length === 0 ? (
          <EmptyState titleText={words.noInstances} icon={ChartBarIcon} headingLevel="h3" variant="sm">
            <EmptyStateBody>{words.noInstancesWhat}</EmptyStateBody>
          </EmptyState>
        ) : (
          <>
            <Table aria-label={words.byType} variant="compact" gridBreakPoint="grid-md">
              <Thead>
                <Tr>
                  <Th>{words.type}</Th>
                  <Th>{words.count}</Th>
                  <Th>{words.duration}</Th>
                </Tr>
              </Thead>
              <Tbody>
                {types.map((one) => (
                  <Tr key={one.type}>
                    <Td dataLabel={words.type}>{instances.find((instance) => instance.type === one.type)?.type_name ?? one.type}</Td>
                    <Td dataLabel={words.count}>{one.count}</Td>
                    <Td dataLabel={words.duration}>{showSpan(one.duration)}</Td>
                  </Tr>
                ))}
              </Tbody>
            </Table>
            <Title headingLevel="h3">{words.each}</Title>
            <Table aria-label={words.each} variant="compact" gridBreakPoint="grid-lg">
              <Thead>
                <Tr>
                  <Th>{words.instance}</Th>
                  <Th>{words.type}</Th>
                  <Th>{words.units}</Th>
                  <Th>{words.active}</Th>
                  <Th>{words.duration}</Th>
                </Tr>
              </Thead>
              <Tbody>
                {instances.map((one) => (
                  <Tr key={one.instance_id}>
                    <Td dataLabel={words.instance} className="burano-breaks">
                      {one.instance_id}
                    </Td>
                    <Td dataLabel={words.type} className="burano-breaks">
                      {one.type_title ?? one.type_name}
                    </Td>
                    <Td dataLabel={words.units}>{one.unit_count}</Td>
                    <Td dataLabel={words.active}>{one.active ? words.yes : words.no}</Td>
                    <Td dataLabel={words.duration}>{showSpan(one.duration)}</Td>
                  </Tr>
                ))}
              </Tbody>
            </Table>
          </>
        )
      }
    </Loaded>
  );
}

function Servers() {
  const words = useLanguage().text.statistics;
  const servers = useQuery(serversQuery);
  return (
    <Loaded query={servers}>
      {(list) => (
        <Table aria-label={words.servers} variant="compact" gridBreakPoint="grid-xl">
          <Thead>
            <Tr>
              <Th modifier="wrap">{words.host}</Th>
              <Th modifier="wrap">{words.requests}</Th>
              <Th modifier="wrap">{words.errors}</Th>
              <Th modifier="wrap">{words.rate}</Th>
              <Th modifier="wrap">{words.response}</Th>
              <Th modifier="wrap">{words.processor}</Th>
              <Th modifier="wrap">{words.projects}</Th>
              <Th modifier="wrap">{words.updated}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {list.map((one) => (
              <ServerRow key={one.id} server={one} />
            ))}
          </Tbody>
        </Table>
      )}
    </Loaded>
  );
}

function ServerRow({ server }: { server: Server }) {
  const { text, language } = useLanguage();
  const words = text.statistics;
  const project = useSession().project;
  const number = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
  return (
    <Tr>
      <Td dataLabel={words.host} className="burano-breaks">
        {server.host}
      </Td>
      <Td dataLabel={words.requests}>{number.format(server.request_count)}</Td>
      <Td dataLabel={words.errors}>{words.errorsOf(number.format(server.error_count), number.format(failed(server)))}</Td>
      <Td dataLabel={words.rate}>{number.format(server.requests_per_second)}</Td>
      <Td dataLabel={words.response}>{words.milliseconds(number.format(server.average_response_time * 1000))}</Td>
      <Td dataLabel={words.processor}>{words.processorOf(number.format(server.cpu_percent), server.cpu_count)}</Td>
      <Td dataLabel={words.projects} className="burano-breaks">
        {requestsOf(server)
          .slice(0, 5)
          .map(([id, count]) => words.projectOf(id === project?.id ? (project.name ?? id) : id, number.format(count)))
          .join(', ')}
      </Td>
      <Td dataLabel={words.updated} modifier="nowrap" title={showTime(server.updated, language)}>
        {showAge(server.updated, language)}
      </Td>
    </Tr>
  );
}

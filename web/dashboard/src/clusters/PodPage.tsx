import {
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Alert,
  Content,
  Flex,
  FlexItem,
  PageSection,
  Title,
} from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { linkOptions, useParams } from '@tanstack/react-router';
import { lazy, Suspense, type ReactNode } from 'react';

import { showAge, showTime } from '../api/time';
import { EnvironmentTrail } from '../environments/EnvironmentTrail';
import { Failure } from '../shell/Failure';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { clusterQuery } from './clusters';
import { PodState } from './PodState';
import { podQuery, type PodDetails } from './running';

const PodLog = lazy(() => import('./PodLog'));

/** A pod: how it is, what was noted about it, and its log as it is written. */
export function PodPage() {
  const { text } = useLanguage();
  const { environment, object, namespace, pod } = useParams({ from: '/environments/$environment/clusters/$object/pods/$namespace/$pod' });
  const cluster = useQuery(clusterQuery(environment, object));
  const found = useQuery(podQuery(environment, object, namespace, pod));
  return (
    <>
      <EnvironmentTrail
        environment={environment}
        stages={[
          {
            name: cluster.data?.name ?? text.components.cluster,
            link: linkOptions({ to: '/environments/$environment/clusters/$object', params: { environment, object }, search: { tab: 'running' } }),
          },
        ]}
        here={pod}
      />
      <PageSection>
        <Flex>
          <FlexItem grow={{ default: 'grow' }} className="burano-breaks">
            <Title headingLevel="h1">{pod}</Title>
          </FlexItem>
          <FlexItem>
            <span role="status">{found.data && <PodState state={found.data.state} healthy={found.data.healthy} />}</span>
          </FlexItem>
        </Flex>
        <Loaded query={found}>{(details) => <Overview pod={details} />}</Loaded>
      </PageSection>
      {found.data && (
        <>
          <PageSection>
            <Title headingLevel="h2">{text.running.log}</Title>
            <Suspense fallback={<Content component="p">{text.shell.loading}</Content>}>
              <PodLog environment={environment} cluster={object} pod={found.data} />
            </Suspense>
          </PageSection>
          <PageSection>
            <Containers pod={found.data} />
          </PageSection>
          <PageSection isFilled>
            <Events pod={found.data} />
          </PageSection>
        </>
      )}
      {found.error && found.data && (
        <PageSection>
          <Failure error={found.error} />
        </PageSection>
      )}
    </>
  );
}

function Overview({ pod }: { pod: PodDetails }) {
  const { text, language } = useLanguage();
  const words = text.running;
  return (
    <>
      {!pod.healthy && pod.message && <Alert variant="warning" isInline title={pod.message} className="burano-spaced burano-breaks" />}
      <DescriptionList isCompact isHorizontal columnModifier={{ default: '1Col', lg: '2Col' }} className="burano-spaced">
        <Term name={words.namespace}>{pod.namespace}</Term>
        <Term name={words.node}>{pod.node || '–'}</Term>
        <Term name={words.owner}>{pod.owner ? `${pod.owner.kind} ${pod.owner.name}` : words.noOwner}</Term>
        <Term name={words.address}>{pod.address || '–'}</Term>
        <Term name={words.created}>{showTime(pod.created, language)}</Term>
      </DescriptionList>
    </>
  );
}

const Term = ({ name, children }: { name: string; children: ReactNode }) => (
  <DescriptionListGroup>
    <DescriptionListTerm>{name}</DescriptionListTerm>
    <DescriptionListDescription className="burano-breaks">{children}</DescriptionListDescription>
  </DescriptionListGroup>
);

function Containers({ pod }: { pod: PodDetails }) {
  const { text } = useLanguage();
  const words = text.running;
  return (
    <>
      <Title headingLevel="h2">{words.containers}</Title>
      <Table aria-label={words.containers} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th>{words.name}</Th>
            <Th>{words.state}</Th>
            <Th modifier="nowrap">{words.restarts}</Th>
            <Th width={40}>{words.image}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {pod.containers.map((one) => (
            <Tr key={one.name}>
              <Td dataLabel={words.name} className="burano-breaks">
                {one.name} {one.init && <small>({words.init})</small>}
              </Td>
              <Td dataLabel={words.state} className="burano-breaks">
                <PodState state={one.state} healthy={one.ready || (one.init && one.state === 'Completed')} /> {one.message}
              </Td>
              <Td dataLabel={words.restarts}>{one.restarts}</Td>
              <Td dataLabel={words.image} className="burano-breaks">
                {one.image}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </>
  );
}

function Events({ pod }: { pod: PodDetails }) {
  const { text, language } = useLanguage();
  const words = text.running;
  return (
    <>
      <Title headingLevel="h2">{words.events}</Title>
      {pod.events.length === 0 ? (
        <Content component="p">{words.noEvents}</Content>
      ) : (
        <Table aria-label={words.events} variant="compact" gridBreakPoint="grid-lg">
          <Thead>
            <Tr>
              <Th modifier="nowrap">{words.last}</Th>
              <Th>{words.type}</Th>
              <Th>{words.reason}</Th>
              <Th modifier="nowrap">{words.times}</Th>
              <Th width={50}>{words.message}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {pod.events.map((event, i) => (
              <Tr key={i}>
                <Td dataLabel={words.last} modifier="nowrap" title={showTime(event.last, language)}>
                  {showAge(event.last, language)}
                </Td>
                <Td dataLabel={words.type}>{words.types[event.type]}</Td>
                <Td dataLabel={words.reason}>{event.reason}</Td>
                <Td dataLabel={words.times}>{event.count}</Td>
                <Td dataLabel={words.message} className="burano-breaks">
                  {event.message}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </>
  );
}

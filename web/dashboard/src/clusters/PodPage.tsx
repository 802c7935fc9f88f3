import {
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Alert,
  Button,
  Content,
  Flex,
  FlexItem,
  PageSection,
  Title,
} from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { lazy, Suspense, useState, type ReactNode } from 'react';

import { showTime } from '../api/time';
import { useSession } from '../session/session';
import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { EventTable } from './EventTable';
import { PodState } from './PodState';
import { podQuery, type PodDetails } from './running';
import { RunningTrail } from './RunningTrail';
import { WorkloadLink } from './WorkloadLink';
import { canRecreate, isWorkload, recreatePod } from './workloads';

const PodLog = lazy(() => import('./PodLog'));

/** A pod: its state, its events, and its log as it is written. */
export function PodPage() {
  const { text } = useLanguage();
  const { environment, object, namespace, pod } = useParams({ from: '/environments/$environment/clusters/$object/pods/$namespace/$pod' });
  const found = useQuery(podQuery(environment, object, namespace, pod));
  const mayChange = useSession().rules?.includes('update_workload') ?? false;
  const [recreating, setRecreating] = useState(false);
  const client = useQueryClient();
  const navigate = useNavigate();
  // Its successor has another name: its workload's page lists it.
  const leave = () => {
    void client.invalidateQueries({ queryKey: ['environments', environment, 'clusters', object] });
    const owner = found.data?.owner;
    if (owner && isWorkload(owner.kind)) {
      const params = { environment, object, namespace, kind: owner.kind, workload: owner.name };
      return void navigate({ to: '/environments/$environment/clusters/$object/workloads/$namespace/$kind/$workload', params });
    }
    return void navigate({ to: '/environments/$environment/clusters/$object', params: { environment, object }, search: { tab: 'running' } });
  };
  return (
    <>
      <RunningTrail environment={environment} cluster={object} here={pod} />
      <PageSection>
        <Flex>
          <FlexItem className="burano-breaks">
            <Title headingLevel="h1">{pod}</Title>
          </FlexItem>
          <FlexItem grow={{ default: 'grow' }}>
            <span role="status">{found.data && <PodState state={found.data.state} healthy={found.data.healthy} />}</span>
          </FlexItem>
          {mayChange && found.data && canRecreate(found.data) && (
            <FlexItem>
              <Button variant="secondary" onClick={() => setRecreating(true)}>
                {text.running.recreate}
              </Button>
            </FlexItem>
          )}
        </Flex>
        <Loaded query={found}>{(details) => <Overview pod={details} environment={environment} cluster={object} />}</Loaded>
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
            <EventTable events={found.data.events} />
          </PageSection>
        </>
      )}
      {found.error && found.data && (
        <PageSection>
          <Failure error={found.error} />
        </PageSection>
      )}
      {recreating && (
        <Confirm
          title={text.running.recreateTitle(pod)}
          what={text.running.recreateWhat}
          action={text.running.recreate}
          send={() => recreatePod(environment, object, namespace, pod)}
          onDone={leave}
          onClose={() => setRecreating(false)}
        />
      )}
    </>
  );
}

function Overview({ pod, environment, cluster }: { pod: PodDetails; environment: string; cluster: string }) {
  const { text, language } = useLanguage();
  const words = text.running;
  return (
    <>
      {!pod.healthy && pod.message && <Alert variant="warning" isInline title={pod.message} className="burano-spaced burano-breaks" />}
      <DescriptionList isCompact isHorizontal columnModifier={{ default: '1Col', lg: '2Col' }} className="burano-spaced">
        <Term name={words.namespace}>{pod.namespace}</Term>
        <Term name={words.node}>{pod.node || '–'}</Term>
        <Term name={words.owner}>
          {pod.owner ? (
            <WorkloadLink environment={environment} cluster={cluster} workload={{ ...pod.owner, namespace: pod.namespace }} withKind />
          ) : pod.object ? (
            <Link to="/environments/$environment/components/$object" params={{ environment, object: pod.object }}>
              {words.toComponent}
            </Link>
          ) : (
            words.noOwner
          )}
        </Term>
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

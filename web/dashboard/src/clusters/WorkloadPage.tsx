import {
  Button,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Flex,
  FlexItem,
  Label,
  PageSection,
  Title,
} from '@patternfly/react-core';
import { CheckCircleIcon } from '@patternfly/react-icons';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';

import { showTime } from '../api/time';
import { useSession } from '../session/session';
import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { EventTable } from './EventTable';
import { PodTable } from './PodTable';
import { runningQuery, type WorkloadDetails } from './running';
import { RunningTrail } from './RunningTrail';
import { ScaleWorkload } from './ScaleWorkload';
import { canRestart, canScale, isWorkload, podsOf, restartWorkload, workloadQuery, type WorkloadRef } from './workloads';

/** A workload: its pods, its events, and its commands. */
export function WorkloadPage() {
  const { text } = useLanguage();
  const { environment, object, namespace, kind, workload } = useParams({ from: '/environments/$environment/clusters/$object/workloads/$namespace/$kind/$workload' });
  const ref: WorkloadRef = { environment, cluster: object, namespace, kind: isWorkload(kind) ? kind : 'Deployment', workload };
  const found = useQuery(workloadQuery(ref));
  const running = useQuery(runningQuery(environment, object));
  const pods = podsOf(running.data?.pods ?? [], ref);
  return (
    <>
      <RunningTrail environment={environment} cluster={object} here={workload} />
      <PageSection>
        <Flex>
          <FlexItem className="burano-breaks">
            <Title headingLevel="h1">
              {kind} {workload}
            </Title>
          </FlexItem>
          {found.data && <Head workload={found.data} of={ref} />}
        </Flex>
        <Loaded query={found}>{(details) => <Overview workload={details} of={ref} />}</Loaded>
      </PageSection>
      {found.data && (
        <>
          <PageSection>
            {running.error && <Failure error={running.error} />}
            {pods.length > 0 ? <PodTable list={pods} environment={environment} cluster={object} /> : running.data && <Content component="p">{text.running.noPods}</Content>}
          </PageSection>
          <PageSection isFilled>
            <EventTable events={found.data.events} />
          </PageSection>
        </>
      )}
    </>
  );
}

/** The state of a workload, and its viewer's commands. */
function Head({ workload, of }: { workload: WorkloadDetails; of: WorkloadRef }) {
  const { text } = useLanguage();
  const words = text.running;
  const client = useQueryClient();
  const mayChange = useSession().rules?.includes('update_workload') ?? false;
  const [dialog, setDialog] = useState<'' | 'scale' | 'restart'>('');
  const whole = workload.ready >= workload.wanted;
  const done = () => {
    setDialog('');
    return client.invalidateQueries({ queryKey: ['environments', of.environment, 'clusters', of.cluster] });
  };
  return (
    <>
      <FlexItem grow={{ default: 'grow' }}>
        <span role="status">
          <Label variant="outline" status={whole ? 'success' : 'warning'} icon={whole ? <CheckCircleIcon /> : undefined}>
            {words.podsReady(workload.ready, workload.wanted)}
          </Label>
        </span>
      </FlexItem>
      {mayChange && canScale(workload) && (
        <FlexItem>
          <Button variant="secondary" onClick={() => setDialog('scale')}>
            {words.scale}
          </Button>
        </FlexItem>
      )}
      {mayChange && canRestart(workload) && (
        <FlexItem>
          <Button variant="secondary" onClick={() => setDialog('restart')}>
            {words.restart}
          </Button>
        </FlexItem>
      )}
      {dialog === 'scale' && <ScaleWorkload of={of} wanted={workload.wanted} onDone={() => void done()} onClose={() => setDialog('')} />}
      {dialog === 'restart' && (
        <Confirm
          title={words.restartTitle(workload.name)}
          what={words.restartWhat}
          action={words.restart}
          send={() => restartWorkload(of)}
          onDone={() => void done()}
          onClose={() => setDialog('')}
        />
      )}
    </>
  );
}

function Overview({ workload, of }: { workload: WorkloadDetails; of: WorkloadRef }) {
  const { text, language } = useLanguage();
  const words = text.running;
  const terms: [string, string][] = [
    [words.namespace, workload.namespace],
    [words.created, showTime(workload.created, language)],
    [words.images, workload.images.join(', ')],
  ];
  return (
    <>
      <DescriptionList isCompact isHorizontal columnModifier={{ default: '1Col', lg: '2Col' }} className="burano-spaced">
        {terms.map(([name, value]) => (
          <DescriptionListGroup key={name}>
            <DescriptionListTerm>{name}</DescriptionListTerm>
            <DescriptionListDescription className="burano-breaks">{value || '–'}</DescriptionListDescription>
          </DescriptionListGroup>
        ))}
      </DescriptionList>
      {workload.managed && (
        <Content component="p">
          {workload.object ? words.madeForComponent : words.partOfCluster}{' '}
          {workload.object && (
            <Link to="/environments/$environment/components/$object" params={{ environment: of.environment, object: workload.object }}>
              {words.toComponent}
            </Link>
          )}
        </Content>
      )}
    </>
  );
}

import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Flex,
  FlexItem,
  Label,
  PageSection,
  Skeleton,
  Tab,
  Tabs,
  TabTitleText,
  Title,
} from '@patternfly/react-core';
import { CubesIcon, GlobeIcon, MoonIcon } from '@patternfly/react-icons';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';

import { showTime } from '../api/time';
import { statesQuery } from '../components/components';
import { ComponentTable } from '../components/ComponentTable';
import { DelegationCard } from '../delegation/DelegationCard';
import { LastFailure } from '../deployments/LastFailure';
import { DeployDialog } from '../draft/DeployDialog';
import { discard, shownQuery, usableDraft, type Draft } from '../draft/draft';
import { DraftBanner } from '../draft/DraftBanner';
import { OtherDrafts } from '../draft/OtherDrafts';
import { RefusedEdit } from '../draft/RefusedEdit';
import { useDraft } from '../draft/useDraft';
import { FindingCard } from '../findings/FindingCard';
import { PastTab } from '../past/PastTab';
import { useRegionOf } from '../regions/regions';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { DeleteDialog } from './DeleteDialog';
import { deleteEnvironment, environmentsQuery, isBusy, renameEnvironment } from './environments';
import { EnvironmentTrail } from './EnvironmentTrail';
import { ForeignProject } from './ForeignProject';
import { History } from './History';
import { NameDialog } from './NameDialog';
import { nextOf, hibernationQuery } from './schedule';
import { ScheduleDialog } from './ScheduleDialog';
import { SleepDialog } from './SleepDialog';
import { StateLabel } from './StateLabel';
import type { EnvironmentTab } from './tabs';

const TopologyTab = lazy(() => import('../topology/TopologyTab').then((module) => ({ default: module.TopologyTab })));

/** One environment: what is in it, and what was done to it. */
export function EnvironmentPage() {
  const { text, language } = useLanguage();
  const words = text.environments;
  const { environment } = useParams({ from: '/environments/$environment' });
  const { tab = 'components' } = useSearch({ from: '/environments/$environment' });
  const navigate = useNavigate();
  const client = useQueryClient();
  const { user, draft } = useDraft(environment);
  const details = useQuery(shownQuery(environment, draft));
  const [dialog, setDialog] = useState<'rename' | 'delete' | 'sleep' | 'schedule' | null>(null);
  const [deploying, setDeploying] = useState<{ draft: Draft; isNew: boolean } | null>(null);
  const begin = useMutation({ mutationFn: () => usableDraft(client, user, environment), onSuccess: setDeploying });
  const drop = useMutation({ mutationFn: (unchanged: Draft) => discard(client, user, environment, unchanged) });
  const region = useRegionOf(environment);
  const services = details.data?.services ?? [];
  const busy = isBusy(details.data);
  const states = useQuery(statesQuery(environment, draft?.state === 'opened' ? draft.session : undefined, busy)).data;
  const sleeping = nextOf(useQuery(hibernationQuery(environment)).data);
  const isEmpty = details.data?.services?.length === 0 && !draft;

  return (
    <>
      <EnvironmentTrail environment={environment} />
      <ForeignProject project={details.data?.tenant_id} />
      <PageSection>
        <Flex flexWrap={{ default: 'wrap', '2xl': 'nowrap' }} alignItems={{ default: 'alignItemsFlexStart' }}>
          <Flex grow={{ default: 'grow' }}>
            <FlexItem className="burano-breaks">
              <Title headingLevel="h1">{details.data?.name ?? ' '}</Title>
            </FlexItem>
            <FlexItem>
              <span role="status">
                <StateLabel state={states?.state} />
              </span>
            </FlexItem>
            {region && (
              <FlexItem>
                <Label variant="outline" icon={<GlobeIcon />}>
                  {text.wizard.region(region)}
                </Label>
              </FlexItem>
            )}
            {sleeping && (
              <FlexItem>
                <Label variant="outline" icon={<MoonIcon />}>
                  {words.schedule.next[sleeping.does](showTime(sleeping.at, language))}
                </Label>
              </FlexItem>
            )}
          </Flex>
          <Flex flex={{ '2xl': 'flexNone' }} spaceItems={{ default: 'spaceItemsSm' }}>
            <FlexItem>
              <Button variant="secondary" onClick={() => void navigate({ to: '/catalog', search: { environment } })} isDisabled={!details.data || busy}>
                {text.draft.add}
              </Button>
            </FlexItem>
            <FlexItem>
              <Button
                variant={isEmpty ? 'secondary' : 'primary'}
                onClick={() => begin.mutate()}
                isDisabled={!details.data || busy || begin.isPending}
                isLoading={begin.isPending}
              >
                {words.deploy}
              </Button>
            </FlexItem>
            <FlexItem>
              <Button variant="secondary" onClick={() => setDialog('rename')} isDisabled={!details.data}>
                {words.rename}
              </Button>
            </FlexItem>
            {services.length > 0 && (
              <FlexItem>
                <Button variant="secondary" onClick={() => setDialog('sleep')} isDisabled={busy}>
                  {words.sleepActions[states?.state === 'asleep' ? 'wake' : 'hibernate']}
                </Button>
              </FlexItem>
            )}
            {services.length > 0 && (
              <FlexItem>
                <Button variant="secondary" onClick={() => setDialog('schedule')}>
                  {words.schedule.action}
                </Button>
              </FlexItem>
            )}
            <FlexItem>
              <Button variant="danger" onClick={() => setDialog('delete')} isDisabled={!details.data || details.data.status === 'deleting'}>
                {words.delete}
              </Button>
            </FlexItem>
          </Flex>
        </Flex>
        {details.data && states && <LastFailure details={details.data} states={states} />}
        {draft && <DraftBanner environment={environment} user={user} draft={draft} />}
        <RefusedEdit environment={environment} user={user} draft={draft} />
        <OtherDrafts environment={environment} user={user} draft={draft} />
        {begin.error && <Failure error={begin.error} />}
        {drop.error && <Failure error={drop.error} />}
        {details.error && <Failure error={details.error} onRetry={() => void details.refetch()} />}
      </PageSection>
      <FindingCard environment={environment} />
      <PageSection type="tabs">
        <Tabs
          activeKey={tab}
          onSelect={(_event, key) => void navigate({ to: '.', search: { tab: key as EnvironmentTab }, replace: true })}
          usePageInsets
          aria-label={details.data?.name}
        >
          <Tab eventKey="components" title={<TabTitleText>{words.components}</TabTitleText>} tabContentId="components" />
          <Tab eventKey="topology" title={<TabTitleText>{text.topology.title}</TabTitleText>} tabContentId="topology" />
          <Tab eventKey="history" title={<TabTitleText>{words.history}</TabTitleText>} tabContentId="history" />
          <Tab eventKey="past" title={<TabTitleText>{text.past.tab}</TabTitleText>} tabContentId="past" />
          <Tab eventKey="access" title={<TabTitleText>{text.delegation.tab}</TabTitleText>} tabContentId="access" />
        </Tabs>
      </PageSection>
      <PageSection isFilled id={tab}>
        {tab === 'topology' && details.data && (
          <Suspense fallback={<Skeleton height="24rem" screenreaderText={text.shell.loading} />}>
            <TopologyTab details={details.data} states={states} />
          </Suspense>
        )}
        {tab === 'history' && <History environment={environment} />}
        {tab === 'past' && <PastTab environment={environment} user={user} isBusy={busy} />}
        {tab === 'access' && <DelegationCard environment={environment} />}
        {tab === 'components' && details.isPending && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
        {tab === 'components' && details.data && services.length === 0 && (
          <EmptyState titleText={words.notDeployed} icon={CubesIcon} headingLevel="h2">
            <EmptyStateBody>{words.notDeployedWhat}</EmptyStateBody>
            <EmptyStateFooter>
              <EmptyStateActions>
                <Button onClick={() => void navigate({ to: '/catalog', search: { environment } })}>{text.draft.add}</Button>
              </EmptyStateActions>
            </EmptyStateFooter>
          </EmptyState>
        )}
        {tab === 'components' && details.data && services.length > 0 && <ComponentTable details={details.data} states={states} user={user} />}
      </PageSection>
      {dialog === 'rename' && (
        <NameDialog
          title={words.rename}
          action={text.shell.save}
          initial={details.data?.name}
          send={(name) => renameEnvironment(environment, name)}
          onDone={() => {
            setDialog(null);
            void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
          }}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === 'sleep' && (
        <SleepDialog
          environment={environment}
          name={details.data?.name ?? ''}
          onDone={(deployment) => {
            void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
            void navigate({ to: '/environments/$environment/deployments/$deployment', params: { environment, deployment } });
          }}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === 'schedule' && <ScheduleDialog environment={environment} name={details.data?.name ?? ''} onClose={() => setDialog(null)} />}
      {deploying && (
        <DeployDialog
          environment={environment}
          name={details.data?.name ?? ''}
          user={user}
          session={deploying.draft.session}
          onDone={(deployment) => {
            void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
            void navigate({ to: '/environments/$environment/deployments/$deployment', params: { environment, deployment } });
          }}
          onClose={() => {
            setDeploying(null);
            // A draft that was opened for the dialog alone has no changes.
            if (deploying.isNew) drop.mutate(deploying.draft);
          }}
        />
      )}
      {dialog === 'delete' && details.data && (
        <DeleteDialog
          title={words.deleteTitle(details.data.name ?? '')}
          of={[details.data]}
          send={() => deleteEnvironment(environment)}
          onDone={() => {
            void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
            void navigate({ to: '/environments' });
          }}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  );
}

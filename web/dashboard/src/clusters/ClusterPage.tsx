import {
  Alert,
  Button,
  ClipboardCopy,
  Content,
  Flex,
  FlexItem,
  Label,
  List,
  ListItem,
  PageSection,
  Skeleton,
  Stack,
  StackItem,
  Tab,
  Tabs,
  TabTitleText,
  Title,
} from '@patternfly/react-core';
import { CheckCircleIcon, DownloadIcon, ExclamationCircleIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';
import { linkOptions, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';

import { ActionMenu } from '../actions/ActionMenu';
import { findObject, standsAlone } from '../components/components';
import { environmentQuery, isBusy, nameOf, type EnvironmentDetails, type ObjectModel } from '../environments/environments';
import { EnvironmentTrail } from '../environments/EnvironmentTrail';
import { FindingCard } from '../findings/FindingCard';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { Certificates } from './Certificates';
import { clusterQuery, fileOf, type Cluster } from './clusters';
import { Groups } from './Groups';
import { KubeconfigDialog } from './KubeconfigDialog';
import { MachineKey } from './MachineKey';
import { Members } from './Members';
import { Nodes } from './Nodes';
import { Routes } from './Routes';
import { Snapshots } from './Snapshots';
import { WhatRuns } from './WhatRuns';
import type { ClusterTab } from './look';
import { ScaleDialog } from './ScaleDialog';
import { scales } from './scaling';
import { UpgradeCard } from './UpgradeCard';

/** A Kubernetes cluster, or gateways without one: its present state and its commands. */
export function ClusterPage() {
  const { text } = useLanguage();
  const words = text.clusters;
  const { environment, object } = useParams({ from: '/environments/$environment/clusters/$object' });
  const details = useQuery(environmentQuery(environment));
  const cluster = useQuery(clusterQuery(environment, object));
  const found = findObject(details.data?.services, object)?.object;
  const alone = standsAlone(found);
  const name = cluster.data?.name || (found ? nameOf(found) : object);
  const [kubeconfig, setKubeconfig] = useState<'' | 'asked' | 'saved'>('');
  const [scaling, setScaling] = useState(false);
  const { tab = 'overview' } = useSearch({ from: '/environments/$environment/clusters/$object' });
  const navigate = useNavigate();
  return (
    <>
      <EnvironmentTrail
        environment={environment}
        stages={[{ name, link: linkOptions({ to: '/environments/$environment/components/$object', params: { environment, object } }) }]}
        here={text.components.cluster}
      />
      <PageSection>
        <Flex>
          <FlexItem className="burano-breaks">
            <Title headingLevel="h1">{name}</Title>
          </FlexItem>
          <FlexItem grow={{ default: 'grow' }}>
            <span role="status">{cluster.data && <Health cluster={cluster.data} />}</span>
          </FlexItem>
          {!alone && (
            <FlexItem>
              <Button icon={<DownloadIcon />} onClick={() => setKubeconfig('asked')} isDisabled={!cluster.data}>
                {words.kubeconfig}
              </Button>
            </FlexItem>
          )}
          {found && scales(found) && (
            <FlexItem>
              <Button variant="secondary" onClick={() => setScaling(true)} isDisabled={isBusy(details.data)}>
                {words.scale}
              </Button>
            </FlexItem>
          )}
          {found && details.data && (
            <FlexItem>
              <ActionMenu environment={details.data} object={found} labelled />
            </FlexItem>
          )}
        </Flex>
        {kubeconfig === 'saved' && <KubeconfigUse file={fileOf(name)} />}
        {cluster.error && <Failure error={cluster.error} onRetry={() => void cluster.refetch()} />}
        {cluster.isPending && tab !== 'running' && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
      </PageSection>
      <FindingCard environment={environment} object={object} />
      <PageSection type="tabs">
        <Tabs
          activeKey={tab}
          onSelect={(_event, key) => void navigate({ to: '.', search: { tab: key as ClusterTab }, replace: true })}
          usePageInsets
          aria-label={name}
        >
          <Tab eventKey="overview" title={<TabTitleText>{text.running.overview}</TabTitleText>} tabContentId="overview" />
          {!alone && <Tab eventKey="running" title={<TabTitleText>{text.running.title}</TabTitleText>} tabContentId="running" />}
          <Tab eventKey="protection" title={<TabTitleText>{alone ? text.certificates.title : text.snapshots.tab}</TabTitleText>} tabContentId="protection" />
        </Tabs>
      </PageSection>
      <div id={tab} style={{ display: 'contents' }}>
        {tab === 'overview' && cluster.data && (
          <Parts environment={environment} object={object} cluster={cluster.data} checked={cluster.dataUpdatedAt} model={found} details={details.data} />
        )}
        {tab === 'running' && (
          <PageSection isFilled>
            <WhatRuns environment={environment} cluster={object} />
          </PageSection>
        )}
        {tab === 'protection' && (
          <PageSection isFilled>
            <Stack hasGutter>
              {!alone && (
                <StackItem>
                  <Snapshots environment={environment} cluster={object} object={found} busy={isBusy(details.data)} />
                </StackItem>
              )}
              {cluster.data && (
                <StackItem>
                  <Certificates environment={environment} cluster={cluster.data} object={found} busy={isBusy(details.data)} />
                </StackItem>
              )}
            </Stack>
          </PageSection>
        )}
      </div>
      {kubeconfig === 'asked' && (
        <KubeconfigDialog environment={environment} cluster={object} name={name} onDone={() => setKubeconfig('saved')} onClose={() => setKubeconfig('')} />
      )}
      {scaling && found && <ScaleDialog environment={environment} object={found} cluster={cluster.data} onClose={() => setScaling(false)} />}
    </>
  );
}

function Health({ cluster }: { cluster: Cluster }) {
  const { text } = useLanguage();
  return (
    <Label variant="outline" status={cluster.healthy ? 'success' : 'danger'} icon={cluster.healthy ? <CheckCircleIcon /> : <ExclamationCircleIcon />}>
      {cluster.healthy ? text.clusters.healthy : text.clusters.unhealthy}
    </Label>
  );
}

function KubeconfigUse({ file }: { file: string }) {
  const { text } = useLanguage();
  return (
    <Alert variant="success" isInline title={text.kubeconfig.saved} className="burano-spaced">
      <Content component="p">{text.clusters.kubeconfigUse}</Content>
      <ClipboardCopy isReadOnly hoverTip={text.actions.copy} clickTip={text.actions.copy} isCode>
        {`kubectl --kubeconfig ${file} get nodes`}
      </ClipboardCopy>
    </Alert>
  );
}

interface PartsProps {
  environment: string;
  object: string;
  cluster: Cluster;
  checked: number;
  model: ObjectModel | undefined;
  details: EnvironmentDetails | undefined;
}

function Parts({ environment, object, cluster, checked, model, details }: PartsProps) {
  const { text, language } = useLanguage();
  const words = text.clusters;
  const problems = cluster.problems ?? [];
  const alone = standsAlone(model);
  return (
    <>
      <PageSection>
        {problems.length > 0 && (
          <Alert variant="danger" isInline title={words.problems} className="burano-spaced">
            <List>
              {problems.map((problem) => (
                <ListItem key={problem} className="burano-breaks">
                  {problem}
                </ListItem>
              ))}
            </List>
          </Alert>
        )}
        {cluster.api && (
          <Content component="p" className="burano-breaks">
            {words.api}: <code>{cluster.api}</code>
          </Content>
        )}
        {cluster.registry && (
          <Content component="p" className="burano-breaks">
            {words.registry}: <code>{cluster.registry}</code>
          </Content>
        )}
        {cluster.virtual_address && (
          <Content component="p" className="burano-breaks">
            {words.virtualAddress}: <code>{cluster.virtual_address.floating_address || cluster.virtual_address.address}</code>
          </Content>
        )}
        {cluster.api_address && (
          <Content component="p" className="burano-breaks">
            {words.apiAddress}: <code>{cluster.api_address.floating_address || cluster.api_address.address}</code>
          </Content>
        )}
        {cluster.gateway_scaling && (
          <Content component="p" className="burano-breaks">
            {words.gatewayScaling(cluster.gateway_scaling.minimum ?? 0, cluster.gateway_scaling.maximum ?? 0, cluster.gateway_scaling.sessions ?? 0)}{' '}
            {cluster.gateway_scaling.last_decision?.text}
          </Content>
        )}
        <Content component="small">{words.checked(new Intl.DateTimeFormat(language, { timeStyle: 'medium' }).format(checked))}</Content>
      </PageSection>
      <PageSection>
        <Nodes cluster={cluster} object={model} environment={details} />
        {!alone && <MachineKey environment={environment} cluster={object} />}
      </PageSection>
      {(cluster.groups ?? []).length > 0 && (
        <PageSection>
          <Groups cluster={cluster} object={model} environment={details} />
        </PageSection>
      )}
      <PageSection>
        <Routes environment={environment} object={object} cluster={cluster} none={alone ? words.noOwnRoutesWhat : words.noRoutesWhat} />
      </PageSection>
      {!alone && (
        <>
          <PageSection>
            <UpgradeCard environment={environment} cluster={object} status={cluster} object={model} busy={isBusy(details)} />
          </PageSection>
          <PageSection isFilled>
            <Members cluster={cluster} />
          </PageSection>
        </>
      )}
    </>
  );
}

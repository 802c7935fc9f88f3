import {
  Button,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Flex,
  FlexItem,
  PageSection,
  Skeleton,
  Tab,
  Tabs,
  TabTitleText,
  Title,
} from '@patternfly/react-core';
import { CubesIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';
import { linkOptions, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useMemo, useState } from 'react';

import { ActionMenu } from '../actions/ActionMenu';
import { partsOf } from '../actions/actions';
import { LastFailure } from '../deployments/LastFailure';
import { shownQuery } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import { classOf, environmentQuery, isBusy, nameOf } from '../environments/environments';
import { EnvironmentTrail } from '../environments/EnvironmentTrail';
import { namesOf } from '../environments/objects';
import { StateLabel } from '../environments/StateLabel';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { Chosen } from './Chosen';
import { ClassLogo } from './ClassLogo';
import { ComponentLog } from './ComponentLog';
import { endpointsOf, findObject, hasNodes, headerOf, lastReportsQuery, modelQuery, statesQuery, type Found } from './components';
import { EditComponent } from './EditComponent';
import { pathOf } from './editing';
import { Endpoints } from './Endpoints';
import { LastReport } from './LastReport';
import { Metadata } from './Metadata';
import { Properties } from './Properties';
import type { ComponentTab } from './tabs';

/** One object of an environment as it is deployed: a component, or something that one holds. */
export function ComponentPage() {
  const text = useText();
  const words = text.components;
  const { environment, object } = useParams({ from: '/environments/$environment/components/$object' });
  const { tab = 'overview', edit = false } = useSearch({ from: '/environments/$environment/components/$object' });
  const navigate = useNavigate();
  const { draft } = useDraft(environment);
  const details = useQuery(shownQuery(environment, draft));
  const model = useQuery(modelQuery(environment));
  const names = useMemo(() => namesOf(model.data), [model.data]);
  const found = useMemo(() => findObject(details.data?.services, object) ?? findObject(model.data, object), [details.data, model.data, object]);
  const path = useMemo(() => pathOf(details.data?.services, object), [details.data, object]);
  const [editing, setEditing] = useState<boolean>(edit);
  const endEditing = () => {
    setEditing(false);
    if (edit) void navigate({ to: '.', search: { tab }, replace: true });
  };
  const error = details.error ?? model.error;
  const states = useQuery(statesQuery(environment, draft?.state === 'opened' ? draft.session : undefined, isBusy(details.data))).data;
  const component = states?.components.find((one) => one.id === object);

  return (
    <>
      <EnvironmentTrail
        environment={environment}
        stages={(found?.owners ?? [])
          .filter((owner) => owner['?']?.id !== environment)
          .map((owner) => ({
            name: nameOf(owner),
            link: linkOptions({ to: '/environments/$environment/components/$object', params: { environment, object: owner['?']?.id ?? '' } }),
          }))}
        here={found ? nameOf(found.object) : object}
      />
      {error && (
        <PageSection>
          <Failure error={error} onRetry={() => void Promise.all([details.refetch(), model.refetch()])} />
        </PageSection>
      )}
      {!error && !found && (details.isPending || model.isPending) && (
        <PageSection>
          <Skeleton height="12rem" screenreaderText={text.shell.loading} />
        </PageSection>
      )}
      {!found && details.data && model.data && (
        <PageSection isFilled>
          <EmptyState titleText={words.notFound} icon={CubesIcon} headingLevel="h1">
            <EmptyStateBody>{words.notFoundWhat}</EmptyStateBody>
            <EmptyStateFooter>
              <EmptyStateActions>
                <Button onClick={() => void navigate({ to: '/environments/$environment', params: { environment } })}>{words.toEnvironment}</Button>
              </EmptyStateActions>
            </EmptyStateFooter>
          </EmptyState>
        </PageSection>
      )}
      {found && details.data && (
        <>
          <PageSection>
            <Flex>
              <FlexItem>
                <ClassLogo className={classOf(found.object)} />
              </FlexItem>
              <FlexItem className="burano-breaks">
                <Title headingLevel="h1">{nameOf(found.object)}</Title>
              </FlexItem>
              <FlexItem grow={{ default: 'grow' }}>
                <StateLabel state={component?.state} />
              </FlexItem>
              {hasNodes(found.object) && (
                <FlexItem>
                  <Button
                    variant="secondary"
                    onClick={() => void navigate({ to: '/environments/$environment/clusters/$object', params: { environment, object } })}
                  >
                    {words.cluster}
                  </Button>
                </FlexItem>
              )}
              {path && (
                <FlexItem>
                  <Button variant="secondary" onClick={() => setEditing(true)} isDisabled={isBusy(details.data)}>
                    {words.edit}
                  </Button>
                </FlexItem>
              )}
              <FlexItem>
                <ActionMenu environment={details.data} object={found.object} labelled />
              </FlexItem>
            </Flex>
            {component && <LastFailure details={details.data} states={{ deployment: null, failures: [], components: [component] }} />}
          </PageSection>
          {editing && path && <EditComponent environment={environment} object={found.object} path={path} owner={found.owners.at(-1)} onClose={endEditing} />}
          <PageSection type="tabs">
            <Tabs
              activeKey={tab}
              onSelect={(_event, key) => void navigate({ to: '.', search: { tab: key as ComponentTab }, replace: true })}
              usePageInsets
              aria-label={nameOf(found.object)}
            >
              <Tab eventKey="overview" title={<TabTitleText>{words.overview}</TabTitleText>} tabContentId="overview" />
              <Tab eventKey="log" title={<TabTitleText>{words.log}</TabTitleText>} tabContentId="log" />
              <Tab eventKey="metadata" title={<TabTitleText>{words.metadata}</TabTitleText>} tabContentId="metadata" />
            </Tabs>
          </PageSection>
          <PageSection isFilled id={tab}>
            {tab === 'overview' && <Overview environment={environment} found={found} names={names} isApplication={path?.length === 1} />}
            {tab === 'log' && <ComponentLog environment={environment} object={found.object} />}
            {tab === 'metadata' && (
              <Metadata
                metadata={headerOf(found.object).metadata}
                of={details.data.services?.some((one) => one['?']?.id === object) ? { environment, object, name: nameOf(found.object) } : undefined}
              />
            )}
          </PageSection>
        </>
      )}
    </>
  );
}

function Overview({ environment, found, names, isApplication }: { environment: string; found: Found; names: Map<string, string>; isApplication: boolean }) {
  const text = useText();
  const details = useQuery(environmentQuery(environment));
  const reports = useQuery(lastReportsQuery(environment, details.data));
  const { name, version, packageName } = partsOf(found.object['?']?.type ?? '');
  const id = found.object['?']?.id ?? '';
  return (
    <>
      <DescriptionList isCompact isHorizontal horizontalTermWidthModifier={{ default: '12ch', md: '22ch' }} className="burano-spaced">
        {endpointsOf(found.object).length > 0 && (
          <Term name={text.components.endpoints}>
            <Endpoints object={found.object} />
          </Term>
        )}
        <Term name={text.environments.type}>{version && version !== '0.0.0' ? `${name} ${version}` : name}</Term>
        {packageName && <Term name={text.components.package}>{packageName}</Term>}
        <Term name={text.components.id}>
          <code>{id}</code>
        </Term>
        <Term name={text.components.lastReport}>
          <LastReport report={reports.data?.[id]} />
        </Term>
      </DescriptionList>
      <Chosen environment={environment} object={found.object} isApplication={isApplication}>
        <Properties object={found.object} environment={environment} names={names} />
      </Chosen>
    </>
  );
}

const Term = ({ name, children }: { name: string; children: React.ReactNode }) => (
  <DescriptionListGroup>
    <DescriptionListTerm>{name}</DescriptionListTerm>
    <DescriptionListDescription className="burano-breaks">{children}</DescriptionListDescription>
  </DescriptionListGroup>
);

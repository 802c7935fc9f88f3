import { Content, Label, List, ListItem, PageSection, Skeleton, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';

import { answered, api } from '../api/client';
import { showSpan, showTime } from '../api/time';
import { DifferenceText } from '../draft/DifferenceText';
import { EnvironmentTrail } from '../environments/EnvironmentTrail';
import { namesOf } from '../environments/objects';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { changesBetween, comparedSteps, verdict, type ObjectChange, type Verdict } from './compare';
import { stepsQuery, type Deployment, type Step } from './deployments';
import { DeploymentState } from './DeploymentState';

const oneQuery = (deployment: string) =>
  queryOptions({
    queryKey: ['deployments', deployment, 'whole'],
    queryFn: () => answered(api.GET('/burano/v1/deployments/{deployment}', { params: { path: { deployment } } })),
  });

/** Two runs of an environment side by side, the earlier one first. */
export function ComparePage() {
  const { text } = useLanguage();
  const words = text.compare;
  const { environment } = useParams({ from: '/environments/$environment/compare' });
  const { before = '', after = '' } = useSearch({ from: '/environments/$environment/compare' });
  const asked = [useQuery(oneQuery(before)), useQuery(oneQuery(after)), useQuery(stepsQuery(before, false)), useQuery(stepsQuery(after, false))] as const;
  const [old, now, oldSteps, newSteps] = asked;
  const error = asked.find((each) => each.error)?.error;
  return (
    <>
      <EnvironmentTrail environment={environment} tab="history" here={words.title} />
      <PageSection>
        <Title headingLevel="h1">{words.title}</Title>
        {error && <Failure error={error} onRetry={() => asked.forEach((each) => void each.refetch())} />}
        {!error && asked.some((each) => each.isPending) && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
      </PageSection>
      {old.data && now.data && oldSteps.data && newSteps.data && (
        <>
          <PageSection>
            <Changes before={old.data} after={now.data} />
          </PageSection>
          <PageSection isFilled>
            <StepTimes before={{ run: old.data, steps: oldSteps.data }} after={{ run: now.data, steps: newSteps.data }} />
          </PageSection>
        </>
      )}
    </>
  );
}

function Run({ run }: { run: Deployment }) {
  const { language } = useLanguage();
  return (
    <>
      <Link to="/environments/$environment/deployments/$deployment" params={{ environment: run.environment_id ?? '', deployment: run.id ?? '' }}>
        {showTime(run.started ?? run.created, language)}
      </Link>{' '}
      <DeploymentState state={run.state} />
    </>
  );
}

function Changes({ before, after }: { before: Deployment; after: Deployment }) {
  const { text } = useLanguage();
  const words = text.compare;
  const changes = changesBetween(before.description, after.description);
  return (
    <>
      <Title headingLevel="h2">{words.changes}</Title>
      {changes.length === 0 ? (
        <Content component="p">{words.noChanges}</Content>
      ) : (
        <List isPlain>
          {changes.map((change) => (
            <ListItem key={change.id} className="burano-breaks">
              <Label isCompact color={change.change === 'added' ? 'green' : change.change === 'removed' ? 'red' : 'blue'}>
                {words.kinds[change.change]}
              </Label>{' '}
              {change.name}
              <Properties change={change} />
            </ListItem>
          ))}
        </List>
      )}
    </>
  );
}

function Properties({ change }: { change: ObjectChange }) {
  if (change.properties.length === 0) return null;
  return (
    <List>
      {change.properties.map((property) => (
        <ListItem key={property.path}>
          <DifferenceText difference={property} />
        </ListItem>
      ))}
    </List>
  );
}

const colours: Record<Verdict, 'red' | 'green' | 'grey' | 'blue'> = { slower: 'red', faster: 'green', same: 'grey', new: 'blue', gone: 'grey' };

interface Side {
  run: Deployment;
  steps: Step[];
}

function StepTimes({ before, after }: { before: Side; after: Side }) {
  const { text } = useLanguage();
  const words = text.compare;
  const rows = comparedSteps(before.steps, after.steps);
  const names = new Map([...namesOf(before.run.description), ...namesOf(after.run.description)]);
  const span = (seconds: number | null) => (seconds === null ? '–' : showSpan(seconds));
  return (
    <>
      <Title headingLevel="h2">{text.deployments.steps}</Title>
      <Content component="p">
        {words.earlier}: <Run run={before.run} /> · {words.later}: <Run run={after.run} />
      </Content>
      {rows.length === 0 ? (
        <Content component="p">{words.noSteps}</Content>
      ) : (
        <Table aria-label={text.deployments.steps} variant="compact" gridBreakPoint="grid-md">
          <Thead>
            <Tr>
              <Th>{text.deployments.step}</Th>
              <Th>{text.deployments.object}</Th>
              <Th>{words.earlier}</Th>
              <Th>{words.later}</Th>
              <Th>{words.difference}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {rows.map((row) => {
              const became = verdict(row);
              const difference = (row.after ?? 0) - (row.before ?? 0);
              return (
                <Tr key={`${row.object} ${row.name}`}>
                  <Td dataLabel={text.deployments.step} className="burano-breaks">
                    {row.name}
                  </Td>
                  <Td dataLabel={text.deployments.object} className="burano-breaks">
                    {names.get(row.object) ?? row.class.split('.').pop()}
                  </Td>
                  <Td dataLabel={words.earlier}>{span(row.before)}</Td>
                  <Td dataLabel={words.later}>{span(row.after)}</Td>
                  <Td dataLabel={words.difference}>
                    <Label isCompact color={colours[became]}>
                      {words.verdicts[became]}
                      {(became === 'slower' || became === 'faster') && ` (${difference > 0 ? '+' : '−'}${showSpan(Math.abs(difference))})`}
                    </Label>
                  </Td>
                </Tr>
              );
            })}
          </Tbody>
        </Table>
      )}
    </>
  );
}

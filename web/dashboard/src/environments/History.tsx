import { Button, EmptyState, EmptyStateBody, Form, FormGroup, FormSelect, FormSelectOption, Skeleton } from '@patternfly/react-core';
import { HistoryIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useId, useState, type FormEvent } from 'react';

import { showTime } from '../api/time';
import type { Deployment } from '../deployments/deployments';
import { DeploymentTable } from '../deployments/DeploymentTable';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { deploymentsQuery } from './environments';

/** The runs over an environment, and a choice of two to compare. */
export function History({ environment }: { environment: string }) {
  const { text } = useLanguage();
  const deployments = useQuery(deploymentsQuery(environment));
  if (deployments.error) return <Failure error={deployments.error} onRetry={() => void deployments.refetch()} />;
  if (!deployments.data) return <Skeleton height="12rem" screenreaderText={text.shell.loading} />;
  if (deployments.data.length === 0) {
    return (
      <EmptyState titleText={text.environments.noDeployments} icon={HistoryIcon} headingLevel="h2">
        <EmptyStateBody>{text.environments.noDeploymentsWhat}</EmptyStateBody>
      </EmptyState>
    );
  }
  const runs = deployments.data.filter((run) => run.action?.method === 'deploy');
  return (
    <>
      {runs.length > 1 && <Choice environment={environment} runs={runs} />}
      <DeploymentTable deployments={deployments.data} />
    </>
  );
}

/** Asks which two runs to compare: at first the last two. */
function Choice({ environment, runs }: { environment: string; runs: Deployment[] }) {
  const { text, language } = useLanguage();
  const words = text.compare;
  const id = useId();
  const navigate = useNavigate();
  const [before, setBefore] = useState(runs[1]?.id ?? '');
  const [after, setAfter] = useState(runs[0]?.id ?? '');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void navigate({ to: '/environments/$environment/compare', params: { environment }, search: { before, after } });
  };
  const options = runs.map((run) => (
    <FormSelectOption
      key={run.id}
      value={run.id}
      label={`${showTime(run.started ?? run.created, language)}: ${text.deployments.states[run.state ?? 'running']}`}
    />
  ));
  return (
    <Form onSubmit={submit} className="burano-compare">
      <FormGroup label={words.earlier} fieldId={`${id}-before`}>
        <FormSelect id={`${id}-before`} value={before} onChange={(_event, value) => setBefore(value)}>
          {options}
        </FormSelect>
      </FormGroup>
      <FormGroup label={words.later} fieldId={`${id}-after`}>
        <FormSelect id={`${id}-after`} value={after} onChange={(_event, value) => setAfter(value)}>
          {options}
        </FormSelect>
      </FormGroup>
      <Button type="submit" variant="secondary" isDisabled={before === after}>
        {words.compare}
      </Button>
    </Form>
  );
}

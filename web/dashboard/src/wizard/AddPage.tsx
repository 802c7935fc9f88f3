import { Alert, Content, PageSection, Skeleton, Title } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';

import { packageQuery } from '../catalog/catalog';
import { MissingIn } from '../catalog/Missing';
import { deployUnseen, discard } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import { deleteEnvironment, environmentQuery, environmentsQuery } from '../environments/environments';
import { EnvironmentTrail } from '../environments/EnvironmentTrail';
import { useRegionOf } from '../regions/regions';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { ApplicationWizard } from './ApplicationWizard';
import { definitionQuery } from './definition';
import { freeName, takenQuery } from './names';
import { Place } from './place';

const route = '/environments/$environment/add/$package' as const;

/** Adds an application to an environment; the present step is part of the address. */
export function AddPage() {
  const text = useText();
  const words = text.wizard;
  const { environment, package: id } = useParams({ from: route });
  const { step = 1, deploy: deploys, quick } = useSearch({ from: route });
  const navigate = useNavigate();
  const client = useQueryClient();
  const { user, draft } = useDraft(environment);
  const definition = useQuery(definitionQuery(id));
  const application = useQuery(packageQuery(id));
  const region = useRegionOf(environment);
  const taken = useQuery(takenQuery(client, user, environment));
  const place = useMemo(() => ({ environment, path: [] }), [environment]);
  const toEnvironment = () => navigate({ to: '/environments/$environment', params: { environment } });
  const onAdded = async () => {
    if (!deploys) return toEnvironment();
    const deployment = await deployUnseen(client, user, environment);
    if (!deployment) return toEnvironment(); // which shows the plan
    return navigate({ to: '/environments/$environment/deployments/$deployment', params: { environment, deployment } });
  };
  // An environment that was made for this application only is of no use without it.
  const cancel = async () => {
    if (!quick) return toEnvironment();
    const { services = [], version } = await client.fetchQuery({ ...environmentQuery(environment, draft?.session), staleTime: 0 });
    if (services.length > 0 || version !== 0) return toEnvironment();
    if (draft) await discard(client, user, environment, draft);
    await deleteEnvironment(environment);
    await navigate({ to: '/catalog/$package', params: { package: id } });
    client.removeQueries({ queryKey: environmentQuery(environment).queryKey });
    return client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
  };
  const error = definition.error ?? application.error ?? taken.error;
  return (
    <>
      <EnvironmentTrail environment={environment} here={application.data?.name ?? ''} />
      <PageSection>
        <Title headingLevel="h1" className="burano-breaks">
          {words.title(application.data?.name ?? '')}
        </Title>
        {definition.data?.source === 'schema' && <Content component="p">{words.schema}</Content>}
        {definition.data?.source === 'json' && <Content component="p">{words.json}</Content>}
        {draft?.state === 'outdated' && <Alert variant="warning" isInline title={words.outdated} />}
        {region !== undefined && <MissingIn region={region} id={id} />}
        {error && <Failure error={error} />}
      </PageSection>
      <PageSection isFilled type="wizard">
        {(definition.isPending || taken.isPending || application.isPending) && <Skeleton height="20rem" screenreaderText={text.shell.loading} />}
        {definition.data && taken.data && application.data && (
          <Place.Provider value={place}>
            <ApplicationWizard
              key={`${environment}/${id}`}
              definition={definition.data}
              at={step - 1}
              onGo={(next) => void navigate({ to: '.', search: { step: next + 1, deploy: deploys, quick } })}
              suggested={freeName(application.data.name ?? '', taken.data)}
              action={deploys ? words.addAndDeploy : words.add}
              onAdded={onAdded}
              onClose={() => void cancel()}
            />
          </Place.Provider>
        )}
      </PageSection>
    </>
  );
}

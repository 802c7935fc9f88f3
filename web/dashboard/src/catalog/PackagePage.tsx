import {
  Breadcrumb,
  BreadcrumbItem,
  Button,
  Card,
  CardBody,
  CardTitle,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Flex,
  FlexItem,
  Grid,
  GridItem,
  Label,
  LabelGroup,
  List,
  ListItem,
  PageBreadcrumb,
  PageSection,
  Skeleton,
  Title,
} from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState, type ReactNode } from 'react';

import { showTime } from '../api/time';
import { createEnvironment, environmentsQuery } from '../environments/environments';
import { useRegion } from '../regions/regions';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { definitionQuery } from '../wizard/definition';
import { licenseOf, needsOf, quickName, supplierOf } from './about';
import { packageQuery, versionsQuery, type Package } from './catalog';
import { ChooseEnvironment } from './ChooseEnvironment';
import { MissingIn } from './Missing';
import { PackageLogo } from './PackageLogo';

const Markdown = lazy(() => import('./Markdown'));

/** One package: its description, its requirements, and the environments for it. */
export function PackagePage() {
  const { text } = useLanguage();
  const { package: id } = useParams({ from: '/catalog/$package' });
  const asked = useQuery(packageQuery(id));
  return (
    <>
      <PageBreadcrumb>
        <Breadcrumb aria-label={text.environments.breadcrumb}>
          <BreadcrumbItem render={({ className }) => <Link className={className} to="/catalog">{text.catalog.title}</Link>} />
          <BreadcrumbItem isActive>{asked.data?.name ?? id}</BreadcrumbItem>
        </Breadcrumb>
      </PageBreadcrumb>
      {asked.error && (
        <PageSection>
          <Failure error={asked.error} onRetry={() => void asked.refetch()} />
        </PageSection>
      )}
      {asked.isPending && (
        <PageSection>
          <Skeleton height="12rem" screenreaderText={text.shell.loading} />
        </PageSection>
      )}
      {asked.data && <Details application={asked.data} />}
    </>
  );
}

function Details({ application }: { application: Package }) {
  const { text, language } = useLanguage();
  const words = text.details;
  const id = application.id ?? '';
  const definition = useQuery({ ...definitionQuery(id), enabled: application.type === 'Application' });
  const forms = definition.data?.forms ?? [];
  const needs = definition.data?.source === 'forms' ? needsOf(forms, words) : [];
  const license = licenseOf(forms);
  const supplier = supplierOf(application.supplier);
  const { region } = useRegion();
  return (
    <>
      <PageSection>
        <Flex alignItems={{ default: 'alignItemsCenter' }}>
          <FlexItem>
            <PackageLogo application={application} />
          </FlexItem>
          <FlexItem grow={{ default: 'grow' }} className="burano-breaks">
            <Title headingLevel="h1">{application.name}</Title>
            {application.author && <Content component="small">{text.catalog.by(application.author)}</Content>}
          </FlexItem>
          {application.type === 'Application' ? <Buttons application={application} /> : <Label>{words.library}</Label>}
        </Flex>
      </PageSection>
      <PageSection isFilled>
        {application.type === 'Application' && <MissingIn region={region} id={id} />}
        <Grid hasGutter>
          <GridItem lg={8}>
            <Flex direction={{ default: 'column' }} rowGap={{ default: 'rowGapMd' }} alignItems={{ default: 'alignItemsStretch' }}>
              <Part title={words.about}>
                {application.description?.trim() ? (
                  <Suspense fallback={<Skeleton height="6rem" screenreaderText={text.shell.loading} />}>
                    <Markdown text={application.description} />
                  </Suspense>
                ) : (
                  words.noDescription
                )}
              </Part>
              {definition.data?.source === 'forms' && (
                <Part title={words.requirements}>
                  {needs.length === 0 ? words.noRequirements : <Lines lines={needs} />}
                </Part>
              )}
              {license && (
                <Part title={words.license}>
                  <p className="burano-breaks">{license}</p>
                </Part>
              )}
              {supplier && (
                <Part title={words.supplier}>
                  <Content className="burano-breaks">
                    <Content component="p">
                      <strong>{supplier.name}</strong> {supplier.summary}
                    </Content>
                    {supplier.description && <Content component="p">{supplier.description}</Content>}
                    {supplier.link && (
                      <a href={supplier.link} target="_blank" rel="noreferrer">
                        {supplier.linkText}
                      </a>
                    )}
                  </Content>
                </Part>
              )}
              {(application.class_definitions ?? []).length > 0 && (
                <Part title={words.classes}>
                  <Lines lines={application.class_definitions ?? []} />
                </Part>
              )}
            </Flex>
          </GridItem>
          <GridItem lg={4}>
            <Flex direction={{ default: 'column' }} rowGap={{ default: 'rowGapMd' }} alignItems={{ default: 'alignItemsStretch' }}>
              <Card>
                <CardBody>
                  <DescriptionList isCompact>
                    <Entry term={words.fullName}>{application.fully_qualified_name}</Entry>
                    {application.author && <Entry term={words.author}>{application.author}</Entry>}
                    {application.version && <Entry term={words.version}>{application.version}</Entry>}
                    <Entry term={words.updated}>{showTime(application.updated, language)}</Entry>
                    <Labels term={words.categories} labels={application.categories} />
                    <Labels term={words.tags} labels={application.tags} />
                  </DescriptionList>
                </CardBody>
              </Card>
              <Versions application={application} />
            </Flex>
          </GridItem>
        </Grid>
      </PageSection>
    </>
  );
}

function Buttons({ application }: { application: Package }) {
  const { text } = useLanguage();
  const words = text.details;
  const { environment: wanted } = useSearch({ from: '/catalog/$package' });
  const navigate = useNavigate();
  const client = useQueryClient();
  const { region } = useRegion();
  const [choosing, setChoosing] = useState(false);
  const id = application.id ?? '';
  const add = (environment: string) => navigate({ to: '/environments/$environment/add/$package', params: { environment, package: id } });
  const quick = useMutation({
    mutationFn: async () => {
      const taken = await client.fetchQuery({ ...environmentsQuery, staleTime: 0 });
      return createEnvironment(quickName(taken.map((one) => one.name ?? '')), { region });
    },
    onSuccess: (made) => {
      void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
      return navigate({ to: '/environments/$environment/add/$package', params: { environment: made.id ?? '', package: id }, search: { deploy: true, quick: true } });
    },
  });
  return (
    <>
      <FlexItem>
        <Button onClick={() => (wanted ? void add(wanted) : setChoosing(true))}>{words.addTo}</Button>
      </FlexItem>
      <FlexItem>
        <Button variant="secondary" onClick={() => quick.mutate()} isLoading={quick.isPending} isDisabled={quick.isPending} title={words.quickWhat}>
          {words.quickDeploy}
        </Button>
      </FlexItem>
      {quick.error && <Failure error={quick.error} />}
      {choosing && <ChooseEnvironment application={application.name ?? ''} onChosen={(one) => void add(one)} onClose={() => setChoosing(false)} />}
    </>
  );
}

function Versions({ application }: { application: Package }) {
  const { text, language } = useLanguage();
  const words = text.details;
  const versions = useQuery(versionsQuery(application.fully_qualified_name ?? ''));
  if ((versions.data ?? []).length < 2) return null;
  return (
    <Part title={words.versions}>
      <List isPlain>
        {(versions.data ?? []).map((one) => (
          <ListItem key={one.id}>
            {one.id === application.id ? (
              <>
                {one.name} {one.version} – {showTime(one.updated, language)} <Label isCompact>{words.thisOne}</Label>
              </>
            ) : (
              <Link to="/catalog/$package" params={{ package: one.id ?? '' }}>
                {one.name} {one.version} – {showTime(one.updated, language)}
              </Link>
            )}
          </ListItem>
        ))}
      </List>
    </Part>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Card>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>{children}</CardBody>
    </Card>
  );
}

function Lines({ lines }: { lines: string[] }) {
  return (
    <List>
      {lines.map((line) => (
        <ListItem key={line} className="burano-breaks">
          {line}
        </ListItem>
      ))}
    </List>
  );
}

function Entry({ term, children }: { term: string; children: ReactNode }) {
  return (
    <DescriptionListGroup>
      <DescriptionListTerm>{term}</DescriptionListTerm>
      <DescriptionListDescription className="burano-breaks">{children}</DescriptionListDescription>
    </DescriptionListGroup>
  );
}

function Labels({ term, labels = [] }: { term: string; labels?: string[] }) {
  if (labels.length === 0) return null;
  return (
    <Entry term={term}>
      <LabelGroup numLabels={10} aria-label={term}>
        {labels.map((label) => (
          <Label key={label} isCompact>
            {label}
          </Label>
        ))}
      </LabelGroup>
    </Entry>
  );
}

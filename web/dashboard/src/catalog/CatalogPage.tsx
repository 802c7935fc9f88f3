import {
  Card,
  CardBody,
  CardFooter,
  CardHeader,
  CardTitle,
  Content,
  FormSelect,
  FormSelectOption,
  Gallery,
  Label,
  LabelGroup,
  PageSection,
  Skeleton,
  TextInput,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core';
import { SearchIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';

import { environmentQuery } from '../environments/environments';
import { useRegion } from '../regions/regions';
import { Failure } from '../shell/Failure';
import { useFirstText } from '../text';
import { applicationsQuery, categoriesQuery, needsQuery, workingFirst, type Need, type Package } from './catalog';
import { Missing } from './Missing';
import { PackageLogo } from './PackageLogo';

const Nothing = lazy(() => import('./Nothing').then(({ Nothing }) => ({ default: Nothing })));

/** All applications that can be added to environments. The search is part of the address. */
export function CatalogPage() {
  const text = useFirstText();
  const words = text.catalog;
  const navigate = useNavigate();
  const { search = '', category = '', environment } = useSearch({ from: '/catalog' });
  const target = useQuery({ ...environmentQuery(environment ?? ''), enabled: environment !== undefined });
  const applications = useQuery(applicationsQuery(search, category));
  const categories = useQuery(categoriesQuery);
  const look = (next: { search?: string; category?: string }) =>
    void navigate({ to: '.', search: { search: search || undefined, category: category || undefined, environment, ...next }, replace: true });
  const needs = useQuery(needsQuery(useRegion().region)).data;
  const list = needs ? workingFirst(applications.data ?? [], needs) : (applications.data ?? []);
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{words.title}</Title>
        {target.data && (
          <Content component="p">
            {words.addingTo(target.data.name ?? '')}{' '}
            <Link to="/environments/$environment" params={{ environment: environment ?? '' }}>
              {words.backToEnvironment}
            </Link>
          </Content>
        )}
      </PageSection>
      <PageSection isFilled>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <TextInput
                type="search"
                aria-label={words.search}
                placeholder={words.search}
                customIcon={<SearchIcon />}
                value={search}
                onChange={(_event, value) => look({ search: value || undefined })}
              />
            </ToolbarItem>
            <ToolbarItem>
              <FormSelect aria-label={words.category} value={category} onChange={(_event, value) => look({ category: value || undefined })}>
                <FormSelectOption value="" label={words.all} />
                {(categories.data ?? []).map((one) => (
                  <FormSelectOption key={one.id} value={one.name} label={one.name ?? ''} />
                ))}
              </FormSelect>
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
        {applications.error && <Failure error={applications.error} onRetry={() => void applications.refetch()} />}
        {applications.isPending && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
        {applications.data && list.length === 0 && (
          <Suspense>
            <Nothing isSearched={Boolean(search || category)} onClear={() => look({ search: undefined, category: undefined })} />
          </Suspense>
        )}
        <Gallery hasGutter minWidths={{ default: '100%', sm: '18rem' }} role="group" aria-label={words.title}>
          {list.map((one) => (
            <Tile key={one.id} application={one} needs={needs?.get(one.id ?? '')} environment={environment} />
          ))}
        </Gallery>
      </PageSection>
    </>
  );
}

function Tile({ application, needs, environment }: { application: Package; needs: Need | undefined; environment?: string }) {
  const text = useFirstText();
  return (
    <Card isFullHeight>
      <CardHeader>
        <PackageLogo application={application} />
      </CardHeader>
      <CardTitle component="h2" className="burano-breaks">
        <Link to="/catalog/$package" params={{ package: application.id ?? '' }} search={{ environment }}>
          {application.name}
        </Link>
      </CardTitle>
      <CardBody isFilled>
        <p className="burano-tile-text">{application.description}</p>
        {needs && needs.missing.length > 0 && (
          <Suspense>
            <Missing of={needs} isShort />
          </Suspense>
        )}
      </CardBody>
      <CardFooter>
        {application.author && <p>{text.catalog.by(application.author)}</p>}
        <LabelGroup numLabels={4} aria-label={text.catalog.category}>
          {(application.categories ?? []).map((category) => (
            <Label key={category} isCompact>
              {category}
            </Label>
          ))}
        </LabelGroup>
      </CardFooter>
    </Card>
  );
}

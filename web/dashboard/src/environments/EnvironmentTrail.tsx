import { Breadcrumb, BreadcrumbItem, PageBreadcrumb } from '@patternfly/react-core';
import { Link, type LinkProps } from '@tanstack/react-router';
import { useQuery } from '@tanstack/react-query';

import { useText } from '../text';
import { environmentQuery } from './environments';
import type { EnvironmentTab } from './tabs';

/** A page on the trail, by its link (linkOptions makes one that is checked). */
export interface Stage {
  name: string;
  link: LinkProps;
}

interface Props {
  environment: string;
  /** The tab of the environment's page to which the trail leads back. */
  tab?: EnvironmentTab;
  /** The pages between the environment's and this one. */
  stages?: Stage[];
  /** The name of this page; omitted on the environment's own. */
  here?: string;
}

/** The trail to a page of an environment. */
export function EnvironmentTrail({ environment, tab, stages = [], here }: Props) {
  const { environments: words } = useText();
  const details = useQuery(environmentQuery(environment));
  const name = details.data?.name ?? environment;
  return (
    <PageBreadcrumb>
      <Breadcrumb aria-label={words.breadcrumb}>
        <BreadcrumbItem render={({ className }) => <Link className={className} to="/environments">{words.title}</Link>} />
        {here === undefined ? (
          <BreadcrumbItem isActive>{name}</BreadcrumbItem>
        ) : (
          <BreadcrumbItem
            render={({ className }) => (
              <Link className={className} to="/environments/$environment" params={{ environment }} search={{ tab }}>
                {name}
              </Link>
            )}
          />
        )}
        {stages.map((stage) => (
          <BreadcrumbItem
            key={stage.name}
            render={({ className }) => (
              <Link className={className} {...stage.link}>
                {stage.name}
              </Link>
            )}
          />
        ))}
        {here !== undefined && <BreadcrumbItem isActive>{here}</BreadcrumbItem>}
      </Breadcrumb>
    </PageBreadcrumb>
  );
}

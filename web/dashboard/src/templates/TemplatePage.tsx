import { Breadcrumb, BreadcrumbItem, Button, EmptyState, EmptyStateBody, Flex, PageBreadcrumb, PageSection } from '@patternfly/react-core';
import { CubesIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';

import { classOf, nameOf } from '../environments/environments';
import { useSession } from '../session/session';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { useText } from '../text';
import { TemplateDialogs, type TemplateDialog } from './TemplateDialogs';
import { templateQuery } from './templates';

/** One template and its applications. */
export function TemplatePage() {
  const words = useText().templates;
  const { template } = useParams({ from: '/templates/$template' });
  const project = useSession().project?.id;
  const details = useQuery(templateQuery(template));
  const [dialog, setDialog] = useState<TemplateDialog | null>(null);
  const of = details.data;
  return (
    <>
      <PageBreadcrumb>
        <Breadcrumb aria-label={words.breadcrumb}>
          <BreadcrumbItem render={({ className }) => <Link className={className} to="/templates">{words.title}</Link>} />
          <BreadcrumbItem isActive>{of?.name ?? template}</BreadcrumbItem>
        </Breadcrumb>
      </PageBreadcrumb>
      <Heading title={of?.name ?? ''} what={of?.description_text}>
        {of && (
          <Flex spaceItems={{ default: 'spaceItemsSm' }}>
            <Button onClick={() => setDialog({ kind: 'environment', of })}>{words.toEnvironment}</Button>
            {of.is_public && (
              <Button variant="secondary" onClick={() => setDialog({ kind: 'clone', of })}>
                {words.clone}
              </Button>
            )}
            {of.tenant_id === project && (
              <>
                <Button variant="secondary" onClick={() => setDialog({ kind: 'rename', of })}>
                  {words.rename}
                </Button>
                <Button variant="danger" onClick={() => setDialog({ kind: 'delete', of })}>
                  {words.delete}
                </Button>
              </>
            )}
          </Flex>
        )}
      </Heading>
      <PageSection isFilled>
        <Loaded query={details}>
          {({ services = [] }) =>
            services.length === 0 ? (
              <EmptyState titleText={words.empty} icon={CubesIcon} headingLevel="h2">
                <EmptyStateBody>{words.emptyWhat}</EmptyStateBody>
              </EmptyState>
            ) : (
              <Table aria-label={words.applications} variant="compact" gridBreakPoint="grid-md">
                <Thead>
                  <Tr>
                    <Th>{words.name}</Th>
                    <Th>{words.class}</Th>
                  </Tr>
                </Thead>
                <Tbody>
                  {services.map((service) => (
                    <Tr key={service['?']?.id}>
                      <Td dataLabel={words.name} className="burano-breaks">
                        {nameOf(service)}
                      </Td>
                      <Td dataLabel={words.class} className="burano-breaks">
                        {classOf(service)}
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )
          }
        </Loaded>
      </PageSection>
      {dialog && <TemplateDialogs dialog={dialog} onClose={() => setDialog(null)} />}
    </>
  );
}

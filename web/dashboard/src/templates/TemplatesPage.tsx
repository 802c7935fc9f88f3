import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, FormSelect, FormSelectOption, PageSection, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { BlueprintIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';

import { showAge, showTime } from '../api/time';
import { useSession } from '../session/session';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { RowActions } from '../shell/RowActions';
import { useLanguage } from '../text';
import { TemplateDialogs, type TemplateDialog } from './TemplateDialogs';
import { templatesQuery } from './templates';
import { whose } from './whose';

/** Templates of environments: the project's, and public ones of others. */
export function TemplatesPage() {
  const { text, language } = useLanguage();
  const words = text.templates;
  const navigate = useNavigate();
  const project = useSession().project?.id;
  const { whose: which } = useSearch({ from: '/templates' });
  const templates = useQuery(templatesQuery(which));
  const [dialog, setDialog] = useState<TemplateDialog | null>(null);
  const create = <Button onClick={() => setDialog({ kind: 'create' })}>{words.create}</Button>;
  return (
    <>
      <Heading title={words.title} what={words.what}>
        {create}
      </Heading>
      <PageSection isFilled>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <FormSelect
                aria-label={words.whose}
                value={which ?? ''}
                onChange={(_event, value) => void navigate({ to: '.', search: { whose: whose.find((one) => one === value) }, replace: true })}
              >
                <FormSelectOption value="" label={words.all} />
                <FormSelectOption value="own" label={words.own} />
                <FormSelectOption value="public" label={words.publicOnes} />
              </FormSelect>
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
        <Loaded query={templates}>
          {(list) =>
            list.length === 0 ? (
              <EmptyState titleText={words.none} icon={BlueprintIcon} headingLevel="h2">
                <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
                <EmptyStateFooter>
                  <EmptyStateActions>{create}</EmptyStateActions>
                </EmptyStateFooter>
              </EmptyState>
            ) : (
              <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-lg">
                <Thead>
                  <Tr>
                    <Th>{words.name}</Th>
                    <Th>{words.public}</Th>
                    <Th>{words.created}</Th>
                    <Th>{words.updated}</Th>
                    <Th screenReaderText={words.actions} />
                  </Tr>
                </Thead>
                <Tbody>
                  {list.map((one) => (
                    <Tr key={one.id}>
                      <Td dataLabel={words.name} className="burano-breaks">
                        <Link to="/templates/$template" params={{ template: one.id ?? '' }}>
                          {one.name}
                        </Link>
                      </Td>
                      <Td dataLabel={words.public}>{one.is_public ? words.yes : words.no}</Td>
                      <Td dataLabel={words.created} modifier="nowrap" title={showTime(one.created, language)}>
                        {showAge(one.created, language)}
                      </Td>
                      <Td dataLabel={words.updated} modifier="nowrap" title={showTime(one.updated, language)}>
                        {showAge(one.updated, language)}
                      </Td>
                      <Td isActionCell>
                        <RowActions
                          of={one.name ?? ''}
                          items={[
                            { title: words.toEnvironment, onClick: () => setDialog({ kind: 'environment', of: one }) },
                            ...(one.is_public ? [{ title: words.clone, onClick: () => setDialog({ kind: 'clone', of: one }) }] : []),
                            ...(one.tenant_id === project
                              ? [
                                  { title: words.rename, onClick: () => setDialog({ kind: 'rename', of: one }) },
                                  { title: words.delete, onClick: () => setDialog({ kind: 'delete', of: one }) },
                                ]
                              : []),
                          ]}
                        />
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

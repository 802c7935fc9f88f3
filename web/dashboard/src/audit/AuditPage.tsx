import {
  Button,
  Content,
  EmptyState,
  ExpandableSection,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Grid,
  GridItem,
  Label,
  PageSection,
  TextInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core';
import { SearchIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';

import { showTime } from '../api/time';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { Pager } from '../shell/Pager';
import { useLanguage } from '../text';
import { auditQuery, type AuditEvent } from './audit';
import { fields, outcomes, type Look } from './look';

/** The actions of users, newest first. */
export function AuditPage() {
  const words = useLanguage().text.audit;
  const navigate = useNavigate();
  const look = useSearch({ from: '/audit' });
  const events = useQuery(auditQuery(look));
  const turn = (next: Partial<Look>) => void navigate({ to: '.', search: { ...look, after: undefined, ...next }, replace: !('after' in next) });
  return (
    <>
      <Heading title={words.title} what={words.what} help="monitoring" />
      <PageSection isFilled>
        <Filters look={look} onLook={turn} />
        <Loaded query={events}>
          {(page) => (
            <>
              <Toolbar>
                <ToolbarContent>
                  <ToolbarItem align={{ default: 'alignEnd' }}>
                    <Pager trail={look.after} next={page.next_marker} onTurn={(after) => turn({ after })} />
                  </ToolbarItem>
                </ToolbarContent>
              </Toolbar>
              {page.events.length === 0 ? (
                <EmptyState titleText={words.none} icon={SearchIcon} headingLevel="h2" variant="sm">
                  <Button variant="link" onClick={() => void navigate({ to: '.', search: {} })}>
                    {words.clear}
                  </Button>
                </EmptyState>
              ) : (
                <Events events={page.events} />
              )}
            </>
          )}
        </Loaded>
      </PageSection>
    </>
  );
}

function Filters({ look, onLook }: { look: Look; onLook: (next: Partial<Look>) => void }) {
  const words = useLanguage().text.audit;
  const [open, setOpen] = useState(Object.entries(look).some(([name, value]) => name !== 'after' && value !== undefined));
  return (
    <ExpandableSection toggleText={words.filters} isExpanded={open} onToggle={(_event, yes) => setOpen(yes)}>
      <Form onSubmit={(event) => event.preventDefault()}>
        <Grid hasGutter md={6} lg={3}>
          <GridItem>
            <FormGroup label={words.outcome} fieldId="audit-outcome">
              <FormSelect id="audit-outcome" value={look.outcome ?? ''} onChange={(_event, value) => onLook({ outcome: outcomes.find((one) => one === value) })}>
                <FormSelectOption value="" label={words.any} />
                {outcomes.map((one) => (
                  <FormSelectOption key={one} value={one} label={words.outcomes[one]} />
                ))}
              </FormSelect>
            </FormGroup>
          </GridItem>
          {fields.map((field) => (
            <GridItem key={field}>
              <FormGroup label={words.fields[field]} fieldId={`audit-${field}`}>
                <TextInput id={`audit-${field}`} value={look[field] ?? ''} onChange={(_event, value) => onLook({ [field]: value.trim() || undefined })} />
              </FormGroup>
            </GridItem>
          ))}
          {(['since', 'until'] as const).map((field) => (
            <GridItem key={field}>
              <FormGroup label={words[field]} fieldId={`audit-${field}`}>
                <TextInput id={`audit-${field}`} type="datetime-local" value={look[field] ?? ''} onChange={(_event, value) => onLook({ [field]: value || undefined })} />
              </FormGroup>
            </GridItem>
          ))}
        </Grid>
      </Form>
    </ExpandableSection>
  );
}

function Events({ events }: { events: AuditEvent[] }) {
  const { text, language } = useLanguage();
  const words = text.audit;
  return (
    <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-xl">
      <Thead>
        <Tr>
          <Th width={20}>{words.when}</Th>
          <Th width={10}>{words.who}</Th>
          <Th width={25}>{words.action}</Th>
          <Th width={15}>{words.target}</Th>
          <Th>{words.outcome}</Th>
          <Th width={15}>{words.request}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {events.map((event) => (
          <Tr key={event.id}>
            <Td dataLabel={words.when}>{showTime(event.eventTime, language)}</Td>
            <Td dataLabel={words.who} className="burano-breaks">
              {event.initiator.name || event.initiator.id}
              <Content component="small">{event.initiator.host?.address}</Content>
            </Td>
            <Td dataLabel={words.action} className="burano-breaks">
              {event.action}
              <Content component="small">{event.requestPath}</Content>
            </Td>
            <Td dataLabel={words.target} className="burano-breaks">
              {event.target.name || event.target.id}
              <Content component="small">{event.target.typeURI}</Content>
            </Td>
            <Td dataLabel={words.outcome}>
              <Label isCompact status={event.outcome === 'success' ? 'success' : 'danger'}>
                {words.outcomeOf(words.outcomes[event.outcome], event.reason?.reasonCode ?? '')}
              </Label>
            </Td>
            <Td dataLabel={words.request} className="burano-breaks">
              <Content component="small">{event.requestId}</Content>
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

import {
  ActionGroup,
  Button,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Label,
  PageSection,
  Progress,
  TextInput,
  Title,
} from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState, type FormEvent } from 'react';

import { showBytes } from '../api/bytes';
import { ProjectRoleCard } from '../projectRole/ProjectRoleCard';
import { readAllProjects, useSession } from '../session/session';
import { Failure } from '../shell/Failure';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { changedLimits, fullness, quotasQuery, resetQuotas, setQuotas, severity, type Quota, type Quotas } from './quotas';

/** How much a project may have and has, and how Burano works in it; administrators change it, of any project. */
export function QuotasPage() {
  const words = useLanguage().text.quotas;
  const navigate = useNavigate();
  const session = useSession();
  const own = session.project?.id ?? '';
  const { project = own } = useSearch({ from: '/quotas' });
  const projects = useQuery({ queryKey: ['projects', 'all'], queryFn: readAllProjects, enabled: session.admin });
  const quotas = useQuery(quotasQuery(project));
  const choose = (id: string) => void navigate({ to: '.', search: { project: id === own ? undefined : id } });
  return (
    <>
      <Heading title={words.title} what={words.what} help="monitoring" />
      <PageSection isFilled>
        {session.admin && <ChooseProject project={project} projects={projects.data ?? []} onChoose={choose} />}
        <Loaded query={quotas}>
          {(data) => (
            <>
              <Bars quotas={data} />
              {session.admin ? <Edit key={JSON.stringify(data)} project={project} quotas={data} /> : <Content component="p">{words.notYours}</Content>}
            </>
          )}
        </Loaded>
        <ProjectRoleCard key={project} project={project} />
      </PageSection>
    </>
  );
}

function ChooseProject({ project, projects, onChoose }: { project: string; projects: { id?: string; name?: string }[]; onChoose: (id: string) => void }) {
  const words = useLanguage().text.quotas;
  const [other, setOther] = useState('');
  const known = projects.some((one) => one.id === project);
  return (
    <Form
      onSubmit={(event) => {
        event.preventDefault();
        if (other.trim()) onChoose(other.trim());
      }}
    >
      <FormGroup label={words.project} fieldId="project">
        <FormSelect id="project" value={project} onChange={(_event, id) => onChoose(id)}>
          {!known && <FormSelectOption value={project} label={project} />}
          {projects.map((one) => (
            <FormSelectOption key={one.id} value={one.id} label={one.name ?? ''} />
          ))}
        </FormSelect>
      </FormGroup>
      <FormGroup label={words.other} fieldId="other">
        <TextInput id="other" value={other} onChange={(_event, value) => setOther(value)} />
      </FormGroup>
    </Form>
  );
}

function useAmount() {
  const { language } = useLanguage();
  return (resource: string, amount: number) =>
    resource.endsWith('_bytes') ? showBytes(amount, language) : new Intl.NumberFormat(language).format(amount);
}

const nameIn = (names: Record<string, string>, resource: string): string => names[resource] ?? resource;

function Bars({ quotas }: { quotas: Quotas }) {
  const words = useLanguage().text.quotas;
  return (
    <DescriptionList className="burano-spaced" isHorizontal horizontalTermWidthModifier={{ default: '8rem', md: '12rem' }}>
      {Object.entries(quotas.quotas ?? {}).map(([resource, quota]) => (
        <DescriptionListGroup key={resource}>
          <DescriptionListTerm>{nameIn(words.resources, resource)}</DescriptionListTerm>
          <DescriptionListDescription>
            <Bar resource={resource} quota={quota} />
          </DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}

function Bar({ resource, quota }: { resource: string; quota: Quota }) {
  const words = useLanguage().text.quotas;
  const amount = useAmount();
  const percent = fullness(quota);
  const used = amount(resource, quota.used ?? 0);
  const said = percent === null ? words.unlimited(used) : words.used(used, amount(resource, quota.limit ?? -1));
  return (
    <>
      {percent === null ? (
        said
      ) : (
        <Progress aria-label={nameIn(words.resources, resource)} value={percent} valueText={said} label={said} size="sm" measureLocation="top" variant={severity(percent)} />
      )}{' '}
      {!quota.default && <Label isCompact>{words.ownLimit}</Label>}
    </>
  );
}

function Edit({ project, quotas }: { project: string; quotas: Quotas }) {
  const words = useLanguage().text.quotas;
  const client = useQueryClient();
  const now = quotas.quotas ?? {};
  const [typed, setTyped] = useState<Record<string, string>>(Object.fromEntries(Object.entries(now).map(([name, quota]) => [name, String(quota.limit)])));
  const renew = (answer: Quotas) => client.setQueryData(quotasQuery(project).queryKey, answer);
  const save = useMutation({ mutationFn: (limits: Record<string, number>) => setQuotas(project, limits), onSuccess: renew });
  const reset = useMutation({ mutationFn: () => resetQuotas(project), onSuccess: renew });
  const changed = changedLimits(typed, now);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (changed) save.mutate(changed);
  };
  const error = save.error ?? reset.error;
  return (
    <Form onSubmit={submit} isHorizontal isWidthLimited>
      <Title headingLevel="h2">{words.edit}</Title>
      <Content component="p">{words.editWhat}</Content>
      {error && <Failure error={error} />}
      {Object.keys(now).map((resource) => (
        <FormGroup key={resource} label={nameIn(words.resources, resource)} fieldId={`limit-${resource}`}>
          <TextInput
            id={`limit-${resource}`}
            type="number"
            min={-1}
            value={typed[resource] ?? ''}
            onChange={(_event, value) => setTyped({ ...typed, [resource]: value })}
            validated={changedLimits({ [resource]: typed[resource] ?? '' }, now) ? 'default' : 'error'}
          />
        </FormGroup>
      ))}
      <ActionGroup>
        <Button type="submit" isDisabled={!changed || Object.keys(changed).length === 0 || save.isPending} isLoading={save.isPending}>
          {words.save}
        </Button>
        <Button variant="secondary" onClick={() => reset.mutate()} isDisabled={reset.isPending || Object.values(now).every((quota) => quota.default)}>
          {words.reset}
        </Button>
      </ActionGroup>
    </Form>
  );
}

import {
  Alert,
  Button,
  Card,
  CardBody,
  CardFooter,
  CardTitle,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Skeleton,
} from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { showTime } from '../api/time';
import { useSession } from '../session/session';
import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import { disableProjectRole, enableProjectRole, mayChange, projectRoleQuery, type ProjectRole } from './projectRole';

/** On whose behalf Burano works in a project. */
export function ProjectRoleCard({ project }: { project: string }) {
  const { text } = useLanguage();
  const words = text.projectRole;
  const may = mayChange(useSession());
  const client = useQueryClient();
  const asked = useQuery(projectRoleQuery(project));
  const [dialog, setDialog] = useState<'enable' | 'disable' | null>(null);
  const done = () => {
    setDialog(null);
    void client.invalidateQueries({ queryKey: projectRoleQuery(project).queryKey });
  };
  const role = asked.data;
  return (
    <Card className="burano-spaced">
      <CardTitle component="h2">{words.title}</CardTitle>
      <CardBody>
        <Content component="p">{words.what}</Content>
        {asked.error && <Failure error={asked.error} onRetry={() => void asked.refetch()} />}
        {asked.isPending && <Skeleton height="4rem" screenreaderText={text.shell.loading} />}
        {role && <Shown role={role} />}
        {role && !may && <Content component="p">{words.notYours}</Content>}
      </CardBody>
      {role && may && (
        <CardFooter>
          <Button variant={role.enabled ? 'danger' : 'secondary'} onClick={() => setDialog(role.enabled ? 'disable' : 'enable')}>
            {role.enabled ? words.disable : words.enable}
          </Button>{' '}
          {role.enabled && role.problem && (
            <Button variant="secondary" onClick={() => setDialog('enable')}>
              {words.again}
            </Button>
          )}
        </CardFooter>
      )}
      {dialog === 'enable' && role && (
        <Confirm
          title={words.enableTitle}
          what={words.enableWhat(role.user.name, role.roles.join(', '))}
          action={words.enable}
          harmless
          send={() => enableProjectRole(project)}
          onDone={done}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === 'disable' && (
        <Confirm
          title={words.disableTitle}
          what={words.disableWhat}
          action={words.disable}
          send={() => disableProjectRole(project)}
          onDone={done}
          onClose={() => setDialog(null)}
        />
      )}
    </Card>
  );
}

function Shown({ role }: { role: ProjectRole }) {
  const { text, language } = useLanguage();
  const words = text.projectRole;
  const rows: [string, string][] = [[words.works, role.enabled ? words.byRole : words.byTrust]];
  if (role.enabled) {
    rows.push([words.user, role.user.name], [words.roles, role.roles.join(', ')], [words.enabledBy, role.enabled_by], [words.since, showTime(role.since, language)]);
  }
  return (
    <>
      {role.problem && (
        <Alert variant="danger" isInline title={words.problem}>
          {role.problem}
        </Alert>
      )}
      <DescriptionList isCompact isHorizontal className="burano-spaced">
        {rows.map(([name, value]) => (
          <DescriptionListGroup key={name}>
            <DescriptionListTerm>{name}</DescriptionListTerm>
            <DescriptionListDescription className="burano-breaks">{value}</DescriptionListDescription>
          </DescriptionListGroup>
        ))}
      </DescriptionList>
    </>
  );
}

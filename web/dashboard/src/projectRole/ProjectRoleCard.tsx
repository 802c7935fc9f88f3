import { Alert, Button, Content } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { showTime } from '../api/time';
import { useSession } from '../session/session';
import { Confirm } from '../shell/Confirm';
import { Facts, FactsCard } from '../shell/FactsCard';
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
  const close = () => setDialog(null);
  const done = () => {
    close();
    void client.invalidateQueries({ queryKey: projectRoleQuery(project).queryKey });
  };
  const role = asked.data;
  const enable = (label: string) => (
    <Button variant="secondary" onClick={() => setDialog('enable')}>
      {label}
    </Button>
  );
  const disable = (
    <Button variant="danger" onClick={() => setDialog('disable')}>
      {words.disable}
    </Button>
  );
  const commands = ({ enabled, problem }: ProjectRole) => {
    if (!may) return [];
    if (!enabled) return [enable(words.enable)];
    return problem ? [disable, enable(words.again)] : [disable];
  };
  return (
    <>
      <FactsCard title={words.title} what={words.what} asked={asked} facts={(found) => <Shown role={found} may={may} />} commands={commands} />
      {dialog === 'enable' && role && (
        <Confirm
          title={words.enableTitle}
          what={words.enableWhat(role.user.name, role.roles.join(', '))}
          action={words.enable}
          harmless
          send={() => enableProjectRole(project)}
          onDone={done}
          onClose={close}
        />
      )}
      {dialog === 'disable' && (
        <Confirm
          title={words.disableTitle}
          what={words.disableWhat}
          action={words.disable}
          send={() => disableProjectRole(project)}
          onDone={done}
          onClose={close}
        />
      )}
    </>
  );
}

function Shown({ role, may }: { role: ProjectRole; may: boolean }) {
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
      <Facts rows={rows} />
      {!may && <Content component="p">{words.notYours}</Content>}
    </>
  );
}

import { Button, Card, CardBody, CardHeader, CardTitle, Content, Spinner } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';

import { Failure } from '../shell/Failure';
import { useFirstText } from '../text';
import { chooseProject, readProjects, type SignedIn } from './session';
import { SignInForm } from './SignInForm';

/** The page for users who are not signed in. */
export function SignIn({ onSignedIn }: { onSignedIn: (session: SignedIn) => void }) {
  const words = useFirstText().session;
  return (
    <Entrance title={words.title} subtitle={words.subtitle}>
      <SignInForm onSignedIn={onSignedIn} />
    </Entrance>
  );
}

function Entrance({ title, subtitle, children }: { title: string; subtitle?: string; children: ReactNode }) {
  return (
    <main className="burano-signin">
      <Card isLarge>
        <CardHeader>
          <img className="burano-logo" src="/dashboard/icon.svg" alt="" />
        </CardHeader>
        <CardTitle component="h1">{title}</CardTitle>
        <CardBody>
          {subtitle && <Content component="p">{subtitle}</Content>}
          {children}
        </CardBody>
      </Card>
    </main>
  );
}

/** Asks a user with several projects for one. */
export function ChooseProject({ onChosen }: { onChosen: (session: SignedIn) => void }) {
  const text = useFirstText();
  const projects = useQuery({ queryKey: ['projects'], queryFn: readProjects });
  const [failed, setFailed] = useState<Error | null>(null);
  const list = projects.data ?? [];
  const error = failed ?? projects.error;
  return (
    <Entrance title={text.session.choose}>
      {error && <Failure error={error} onRetry={() => void projects.refetch()} />}
      {projects.isPending && <Spinner aria-label={text.shell.loading} />}
      {projects.isSuccess && list.length === 0 && (
        <Content>
          <Content component="h2">{text.session.noProjects}</Content>
          <Content component="p">{text.session.noProjectsWhat}</Content>
        </Content>
      )}
      {list.map((project) => (
        <Button key={project.id} variant="link" isBlock onClick={() => chooseProject(project.id ?? '').then(onChosen, setFailed)}>
          {project.name}
        </Button>
      ))}
    </Entrance>
  );
}

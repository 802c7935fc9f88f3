import { Bullseye, Button, Card, CardBody, CardHeader, CardTitle, Content, Modal, ModalBody, ModalHeader, Spinner } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState, type ReactNode } from 'react';

import { isSignedOut } from '../api/client';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { chooseProject, readProjects, readSession, Session, sessionKey, type SignedIn } from './session';
import { SignInForm } from './SignInForm';

/** Shows what is inside to whoever is signed in and works in a project, and the sign-in to everybody else. A sign-in that ends later is
 * renewed in a dialog over the page, which stays as it is. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const text = useText();
  const client = useQueryClient();
  const [ended, setEnded] = useState(false);
  const asked = useQuery({ queryKey: sessionKey, queryFn: readSession, retry: false, staleTime: Infinity });
  const session = asked.data;
  // Whatever answers that nobody is signed in, on any page, ends the sign-in.
  useEffect(() => {
    const look = (error: unknown) => {
      if (isSignedOut(error)) setEnded(true);
    };
    const ofQueries = client.getQueryCache().subscribe((event) => {
      if (event.type === 'updated' && event.action.type === 'error') look(event.action.error);
    });
    const ofChanges = client.getMutationCache().subscribe((event) => {
      if (event.type === 'updated' && event.action.type === 'error') look(event.action.error);
    });
    return () => {
      ofQueries();
      ofChanges();
    };
  }, [client]);
  const signedIn = useCallback(
    (next: SignedIn) => {
      setEnded(false);
      client.setQueryData(sessionKey, next);
      void client.invalidateQueries({ predicate: (query) => query.state.status === 'error' });
    },
    [client],
  );

  if (!session) {
    if (asked.isPending) {
      return (
        <Bullseye>
          <Spinner aria-label={text.shell.loading} />
        </Bullseye>
      );
    }
    if (asked.error && !isSignedOut(asked.error)) {
      return (
        <Bullseye>
          <Failure error={asked.error} onRetry={() => void asked.refetch()} />
        </Bullseye>
      );
    }
    return (
      <Entrance title={text.session.title} subtitle={text.session.subtitle}>
        <SignInForm onSignedIn={signedIn} />
      </Entrance>
    );
  }
  if (!session.project) return <ChooseProject onChosen={signedIn} />;
  return (
    <Session.Provider value={session}>
      {children}
      {ended && (
        <Modal isOpen variant="small" aria-labelledby="again-title">
          <ModalHeader title={text.session.again} labelId="again-title" description={text.session.againWhat} />
          <ModalBody>
            <SignInForm former={session} onSignedIn={signedIn} />
          </ModalBody>
        </Modal>
      )}
    </Session.Provider>
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

function ChooseProject({ onChosen }: { onChosen: (session: SignedIn) => void }) {
  const text = useText();
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

import { Bullseye, Spinner } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useCallback, useEffect, useState, type ReactNode } from 'react';

import { isSignedOut } from '../api/client';
import { Failure } from '../shell/Failure';
import { useFirstText } from '../text';
import { arrive } from './federation';
import { readSession, Session, sessionKey, type SignedIn } from './session';

// A signed-in user needs none of them.
const SignIn = lazy(() => import('./Entrance').then(({ SignIn }) => ({ default: SignIn })));
const ChooseProject = lazy(() => import('./Entrance').then(({ ChooseProject }) => ({ default: ChooseProject })));
const SignInAgain = lazy(() => import('./SignInAgain').then(({ SignInAgain }) => ({ default: SignInAgain })));

/**
 * Shows its content to users who are signed in and work in a project, and the sign-in to all others. A sign-in that
 * ends later is renewed in a dialog over the page, which stays as it is.
 */
export function SessionProvider({ children }: { children: ReactNode }) {
  const text = useFirstText();
  const client = useQueryClient();
  const [ended, setEnded] = useState(false);
  const asked = useQuery({ queryKey: sessionKey, queryFn: async () => (await arrive()) ?? readSession(), retry: false, staleTime: Infinity });
  const session = asked.data;
  // Any answer that no user is signed in, on any page, ends the sign-in.
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

  const wait = (
    <Bullseye>
      <Spinner aria-label={text.shell.loading} />
    </Bullseye>
  );
  if (!session) {
    if (asked.isPending) return wait;
    if (asked.error && !isSignedOut(asked.error)) {
      return (
        <Bullseye>
          <Failure error={asked.error} onRetry={() => void asked.refetch()} />
        </Bullseye>
      );
    }
  }
  if (!session?.project) {
    return <Suspense fallback={wait}>{session ? <ChooseProject onChosen={signedIn} /> : <SignIn onSignedIn={signedIn} />}</Suspense>;
  }
  return (
    <Session.Provider value={session}>
      <Suspense fallback={wait}>{children}</Suspense>
      <Suspense>{ended && <SignInAgain former={session} onSignedIn={signedIn} />}</Suspense>
    </Session.Provider>
  );
}

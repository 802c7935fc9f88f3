import { Alert, AlertActionCloseButton, AlertActionLink, AlertGroup } from '@patternfly/react-core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useRouterState } from '@tanstack/react-router';
import { useEffect, useState } from 'react';

import { answered, api, ApiError } from '../api/client';
import type { Deployment } from '../deployments/deployments';
import { useText } from '../text';
import { unwatch, watchedIn } from './watched';

/** Says that deployments have ended which somebody at this browser has watched. */
export function Notices() {
  const text = useText();
  const words = text.notices;
  const navigate = useNavigate();
  const client = useQueryClient();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [ended, setEnded] = useState<Deployment[]>([]);
  useEffect(() => {
    const look = async () => {
      if (document.visibilityState !== 'visible') return;
      for (const id of watchedIn(localStorage).filter((each) => !path.endsWith(`/deployments/${each}`))) {
        const one = await endOf(id);
        if (!one || !watchedIn(localStorage).includes(id)) continue; // another tab has said it
        unwatch(localStorage, id);
        setEnded((now) => [...now, one]);
        void client.invalidateQueries({ queryKey: ['environments'] });
      }
    };
    const timer = window.setInterval(() => void look(), 4_000);
    return () => window.clearInterval(timer);
  }, [path, client]);
  const close = (one: Deployment) => setEnded((now) => now.filter((each) => each.id !== one.id));
  return (
    <AlertGroup isToast isLiveRegion aria-label={words.title}>
      {ended.map((one) => {
        const failed = one.state === 'completed_w_errors';
        return (
          <Alert
            key={one.id}
            variant={failed ? 'danger' : one.state === 'completed_w_warnings' ? 'warning' : 'success'}
            title={words.ended(text.deployments.states[one.state ?? 'success'])}
            timeout={failed ? false : 15_000}
            onTimeout={() => close(one)}
            actionClose={<AlertActionCloseButton aria-label={text.shell.close} onClose={() => close(one)} />}
            actionLinks={
              <AlertActionLink
                onClick={() => {
                  close(one);
                  void navigate({
                    to: '/environments/$environment/deployments/$deployment',
                    params: { environment: one.environment_id ?? '', deployment: one.id ?? '' },
                  });
                }}
              >
                {words.show}
              </AlertActionLink>
            }
          >
            {one.action?.method === 'deploy' ? text.deployments.deployment : one.action ? text.deployments.action(one.action.method ?? '') : text.deployments.deletion}
          </Alert>
        );
      })}
    </AlertGroup>
  );
}

/** A deployment that has ended; null while it runs, and for what is gone or cannot be asked now. */
async function endOf(deployment: string): Promise<Deployment | null> {
  try {
    const one = await answered(api.GET('/burano/v1/deployments/{deployment}', { params: { path: { deployment } } }));
    return one.finished ? one : null;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) unwatch(localStorage, deployment);
    return null;
  }
}

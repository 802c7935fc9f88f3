import { useQueryClient } from '@tanstack/react-query';
import { useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useState } from 'react';

import { answered, api, ApiError } from '../api/client';
import type { Deployment } from '../deployments/deployments';
import { unwatch, watchedIn } from './watched';

const Toasts = lazy(() => import('./Toasts').then(({ Toasts }) => ({ default: Toasts })));
const Said = lazy(() => import('./Toasts').then(({ Said }) => ({ default: Said })));

/** Reports the ends of deployments that were watched at this browser. */
export function Notices() {
  const client = useQueryClient();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [ended, setEnded] = useState<Deployment[]>([]);
  useEffect(() => {
    const look = async () => {
      if (document.visibilityState !== 'visible') return;
      for (const id of watchedIn(localStorage).filter((each) => !path.endsWith(`/deployments/${each}`))) {
        const one = await endOf(id);
        if (!one || !watchedIn(localStorage).includes(id)) continue; // another tab has reported it
        unwatch(localStorage, id);
        setEnded((now) => [...now, one]);
        void client.invalidateQueries({ queryKey: ['environments'] });
      }
    };
    const timer = window.setInterval(() => void look(), 4_000);
    return () => window.clearInterval(timer);
  }, [path, client]);
  const last = ended.at(-1);
  return (
    <>
      {/* It exists before it has content: content that comes with its region is not read out. */}
      <span aria-live="polite" className="pf-v6-screen-reader">
        <Suspense>{last && <Said one={last} />}</Suspense>
      </span>
      <Suspense>
        {last && <Toasts ended={ended} onClose={(one) => setEnded((now) => now.filter((each) => each.id !== one.id))} />}
      </Suspense>
    </>
  );
}

/** A deployment that has ended; null while it runs, and for one that is gone or cannot be requested now. */
async function endOf(deployment: string): Promise<Deployment | null> {
  try {
    const one = await answered(api.GET('/burano/v1/deployments/{deployment}', { params: { path: { deployment } } }));
    return one.finished ? one : null;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) unwatch(localStorage, deployment);
    return null;
  }
}

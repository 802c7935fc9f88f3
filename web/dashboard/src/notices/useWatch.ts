import { useEffect } from 'react';

import { unwatch, watch } from './watched';

/** Reports the end of a deployment in the visible tab, unless it is this one, which shows it anyway. */
export function useWatch(deployment: string, running: boolean, ended: boolean): void {
  useEffect(() => {
    if (running) watch(localStorage, deployment);
  }, [deployment, running]);
  useEffect(() => {
    if (!ended) return;
    const seen = () => {
      if (document.visibilityState === 'visible') unwatch(localStorage, deployment);
    };
    seen();
    document.addEventListener('visibilitychange', seen);
    return () => document.removeEventListener('visibilitychange', seen);
  }, [deployment, ended]);
}

// A deployment's reports as they come.
import { useEffect, useReducer } from 'react';

import type { Schema } from './client';

export type Report = Schema<'Report'>;

export interface Followed {
  reports: Report[];
  /** State of the deployment, '' until it is known. */
  state: string;
  ended: boolean;
  /** False while the stream is cut off; the browser asks for it again by itself, from the last report on. */
  connected: boolean;
}

type Event =
  | { kind: 'reset' }
  | { kind: 'reports'; reports: Report[] }
  | { kind: 'state'; state: string; ended: boolean }
  | { kind: 'connected'; connected: boolean };

const nothing: Followed = { reports: [], state: '', ended: false, connected: false };

export function followed(now: Followed, event: Event): Followed {
  switch (event.kind) {
    case 'reset':
      return nothing;
    case 'reports':
      return { ...now, reports: [...now.reports, ...event.reports] };
    case 'state':
      return { ...now, state: event.state, ended: event.ended };
    case 'connected':
      return { ...now, connected: event.connected };
  }
}

/** Follows a deployment until it ends or the component goes. */
export function useFollow(deployment: string): Followed {
  const [now, dispatch] = useReducer(followed, nothing);
  useEffect(() => {
    dispatch({ kind: 'reset' });
    const source = new EventSource(`/burano/v1/deployments/${encodeURIComponent(deployment)}/events`);
    // Reports that come in one burst are shown in one go.
    let waiting: Report[] = [];
    let frame = 0;
    const flush = () => {
      frame = 0;
      const reports = waiting;
      waiting = [];
      if (reports.length > 0) dispatch({ kind: 'reports', reports });
    };
    const stateOf = (event: MessageEvent<string>) => (JSON.parse(event.data) as { state: string }).state;
    source.onopen = () => dispatch({ kind: 'connected', connected: true });
    source.onerror = () => dispatch({ kind: 'connected', connected: false });
    source.addEventListener('report', (event: MessageEvent<string>) => {
      waiting.push(JSON.parse(event.data) as Report);
      frame ||= requestAnimationFrame(flush);
    });
    source.addEventListener('state', (event: MessageEvent<string>) => dispatch({ kind: 'state', state: stateOf(event), ended: false }));
    source.addEventListener('end', (event: MessageEvent<string>) => {
      source.close();
      cancelAnimationFrame(frame);
      flush();
      dispatch({ kind: 'state', state: stateOf(event), ended: true });
    });
    return () => {
      source.close();
      cancelAnimationFrame(frame);
    };
  }, [deployment]);
  return now;
}

// Signing in by Keystone's federation: the browser goes to the identity provider and comes back with a ticket.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';
import { signIn, type SignedIn } from './session';

export type Provider = Schema<'Provider'>;

export const providersQuery = queryOptions({
  queryKey: ['providers'],
  queryFn: async () => (await answered(api.GET('/burano/v1/session/providers'))).providers,
  staleTime: Infinity,
  retry: false,
});

/** This tab's data while the browser is elsewhere. */
interface Journey {
  /** The page to come back to. */
  back: string;
  project?: string;
  /** Another tab waits for the sign-in. */
  renews?: boolean;
}

const key = 'burano.federation';
const channel = 'burano.session';

type Memory = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** The ticket of an address's fragment; '' for none. */
export const ticketOf = (hash: string): string => new URLSearchParams(hash.replace(/^#/, '')).get('ticket') ?? '';

/** Reads the tab's data, once. The page to return to must be one of the dashboard's. */
export function comeBack(memory: Memory): Journey {
  const text = memory.getItem(key);
  memory.removeItem(key);
  try {
    const journey = JSON.parse(text ?? '') as Journey;
    return { ...journey, back: /^\/dashboard\/[^\\]*$/.test(journey.back) ? journey.back : '/dashboard/' };
  } catch {
    return { back: '/dashboard/' }; // the tab has begun nothing
  }
}

const begin = async (provider: string): Promise<string> =>
  (await answered(api.POST('/burano/v1/session/websso/{provider}', { params: { path: { provider }, header: { 'X-Requested-With': '' } } }))).location;

/** Leads this tab to the identity provider. */
export async function leave(provider: string, project: string): Promise<void> {
  const { pathname, search } = window.location;
  sessionStorage.setItem(key, JSON.stringify({ back: pathname + search, project: project || undefined } satisfies Journey));
  window.location.assign(await begin(provider));
}

/** Has another tab sign in, so that this page stays as it is; answers once it has. */
export async function renew(provider: string, project: string, signedIn: () => void): Promise<void> {
  // A new tab has a copy of this one's data at the moment when it is opened.
  sessionStorage.setItem(key, JSON.stringify({ back: '/dashboard/', project, renews: true } satisfies Journey));
  const tab = window.open('', '_blank');
  sessionStorage.removeItem(key);
  const told = new BroadcastChannel(channel);
  told.onmessage = () => {
    told.close();
    signedIn();
  };
  const location = await begin(provider);
  if (tab) tab.location.assign(location);
}

/** Signs in with the ticket that the address has; null where it has none. */
export async function arrive(): Promise<SignedIn | null> {
  const ticket = ticketOf(window.location.hash);
  if (!ticket) return null;
  const journey = comeBack(sessionStorage);
  window.history.replaceState(null, '', journey.back); // the ticket stays in no history
  const session = await signIn({ ticket, domain: 'Default', project: journey.project });
  if (journey.renews) {
    const told = new BroadcastChannel(channel);
    told.postMessage('signed in');
    told.close();
    window.close();
  }
  return session;
}

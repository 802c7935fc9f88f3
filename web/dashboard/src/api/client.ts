// Calls of Burano's API, typed from its OpenAPI description: a route that changes breaks the build.
import createClient, { type Middleware } from 'openapi-fetch';

import type { components, paths } from './schema';

/** A type of the API's description, by its name. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

/** The server's answer when it refuses. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Names the request in the server's log; '' where the answer had none. */
    readonly requestId: string,
    /** The faults of an object model, if the server lists them. */
    readonly problems: Schema<'Problem'>[] = [],
    /** Whether the answer is a page of HTML: of a proxy, and not of Burano. */
    readonly isForeign = false,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** No answer came: the server, a proxy before it or the network is away. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** No user is signed in, or not any more. */
export const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.status === 401;

interface ErrorBody {
  message?: string;
  explanation?: string;
  title?: string;
  error?: { message?: string };
  problems?: Schema<'Problem'>[];
}

/** The text of a refusal without the markup that Murano's library ends it with. */
export const plain = (text: string): string => text.replace(/<br\s*\/?>/g, '\n').trim();

/** Reads an answer that is no success; Murano's shapes and Burano's own. */
export async function readError(response: Response): Promise<ApiError> {
  const requestId = response.headers.get('x-openstack-request-id') ?? '';
  const text = await response.text();
  let body: ErrorBody = {};
  try {
    body = JSON.parse(text) as ErrorBody;
  } catch {
    if (/^\s*</.test(text)) return new ApiError(response.status, titleIn(text) || response.statusText, requestId, [], true);
    body = { message: text };
  }
  const reason = body.error?.message || body.message || body.explanation || body.title || response.statusText;
  return new ApiError(response.status, plain(reason), requestId, body.problems ?? []);
}

/** The title of a page. */
const titleIn = (page: string): string => (/<title[^>]*>([^<]{0,200})</i.exec(page)?.[1] ?? '').trim();

/** The error of a request without an answer; browsers have a TypeError for that, such as "Failed to fetch". */
export const readFailure = (error: unknown): unknown => (error instanceof TypeError ? new Unreachable(error.message) : error);

const asBrowser: Middleware = {
  onRequest({ request }) {
    // Pages of other sites cannot send this header; the server demands it of whatever changes something.
    request.headers.set('X-Requested-With', 'burano-dashboard');
    request.headers.set('Accept', 'application/json');
    return request;
  },
  async onResponse({ response }) {
    if (!response.ok) throw await readError(response);
    return response;
  },
  onError: ({ error }) => readFailure(error) as Error,
};

export const api = createClient<paths>({ baseUrl: '/', credentials: 'same-origin' });
api.use(asBrowser);

/** Returns the body of an answer; the client has thrown where there is none because of an error. */
export async function answered<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call;
  return data as T;
}

/** Sends files, which the typed client cannot. */
export async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, {
    ...init,
    credentials: 'same-origin',
    headers: { ...init.headers, 'X-Requested-With': 'burano-dashboard', Accept: 'application/json' },
  }).catch((error: unknown) => {
    throw readFailure(error);
  });
  if (!response.ok) throw await readError(response);
  return response;
}

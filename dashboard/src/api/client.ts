import { signal } from '@preact/signals';
import { ROOT } from '../routing/root.js';
import { parseExactly, writeExactly } from './exact-json.js';
import { isUnreachable, Problem, problemOf } from './problem.js';

/** The one way to the API. Changes are sent once and never repeated: whoever does not know how one ended looks, and decides. */

/** What a request may have. */
export interface Request {
  /** Whether an operator asks about all tenants, where the API has an answer to that; else it is the chosen one. */
  readonly allTenants?: boolean;
  /** Sent as JSON; a string is sent as it is. */
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The tenant that an operator looks at; null if the key belongs to one. */
export const tenant = signal<string | null>(null);

/** The tenant whose jobs an operator sees who has named none. */
export const DEFAULT_TENANT = 'default';
const TENANT_NAME = 'punctual-tenant';

/** The tenant that was chosen in this tab before the page was loaded again. */
export function rememberedTenant(): string {
  return sessionStorage.getItem(TENANT_NAME) ?? DEFAULT_TENANT;
}

const forgetting: (() => void)[] = [];

/**
 * Has a function called when the page begins to show the things of another tenant, or of another key. Whatever outlives its
 * screen forgets then: what was told, asked or offered about the ones before must not be about the others.
 */
export function whenOthersAreShown(forget: () => void): void {
  forgetting.push(forget);
}

/** To be called when the page begins to show the things of others. */
export function showOthers(): void {
  for (const forget of forgetting) forget();
}

/** Has all requests ask for a tenant; null forgets what was chosen. */
export function chooseTenant(name: string | null): void {
  if (name !== tenant.peek()) showOthers();
  if (name === null) sessionStorage.removeItem(TENANT_NAME);
  else sessionStorage.setItem(TENANT_NAME, name);
  tenant.value = name;
}

/** How often somebody has signed in: a request that was sent before is refused without saying anything about the session of now. */
let signIns = 0;

/** To be called when somebody has signed in. */
export function noteSignedIn(): void {
  signIns += 1;
}

/** Told when the API does not know the session any more. */
let onSessionEnd: () => void = () => undefined;

/** Has a function called when an answer says that nobody is signed in. */
export function whenSessionEnds(run: () => void): void {
  onSessionEnd = run;
}

/** To be called by whoever asks the API in another way, when it answers that nobody is signed in. */
export function noteSignedOut(): void {
  onSessionEnd();
}

/** The address of a request below the root. */
export function requestUrl(path: string, query: Request['query'] = {}): URL {
  const url = new URL(path.replace(/^\//, ''), ROOT);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') url.searchParams.set(name, String(value));
  }
  return url;
}

/** The headers that every request has. */
export function requestHeaders(method: Method, allTenants = false): Record<string, string> {
  return {
    ...(tenant.value !== null && !allTenants && { 'punctual-tenant': tenant.value }),
    // Pages of other origins cannot send this header, so the node knows that the page of its own asks.
    ...(method !== 'GET' && { 'punctual-dashboard': '1' }),
  };
}

/** After so long without a whole answer, a read is given up: a node that hangs must not keep the page waiting for ever. */
const READ_MS = 60_000;

/** Sends a request and answers with its response; throws a `Problem` if the API refuses. */
export async function send(method: Method, path: string, request: Request = {}): Promise<Response> {
  const { body, query, headers, allTenants, signal: broken } = request;
  const signedInAt = signIns;
  const ends = [...(broken ? [broken] : []), ...(method === 'GET' ? [AbortSignal.timeout(READ_MS)] : [])];
  const response = await fetch(requestUrl(path, query), {
    method,
    credentials: 'same-origin',
    headers: {
      ...requestHeaders(method, allTenants),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : writeExactly(body)! }),
    ...(ends.length > 0 && { signal: AbortSignal.any(ends) }),
  }).catch((error: unknown) => {
    throw isUnreachable(error) ? unreachable(method, path) : error;
  });
  noteClock(response);
  if (response.ok) return response;
  if (response.status === 401 && path !== '/v1/session' && signedInAt === signIns) onSessionEnd();
  throw await problemOf(response);
}

/** Sends a request and reads the JSON of its answer. */
export async function call<T>(method: Method, path: string, request?: Request): Promise<T> {
  const response = await send(method, path, request);
  return (response.status === 204 ? undefined : await bodyOf(response, JSON.parse)) as T;
}

/** Reads something. */
export const get = <T>(path: string, request?: Request) => call<T>('GET', path, request);

/** Reads something whose numbers must stay as they are written, such as payloads. */
export async function getExactly<T>(path: string, request?: Request): Promise<T> {
  return (await bodyOf(await send('GET', path, request), parseExactly)) as T;
}

/** What an answer holds. Something in between may have answered with a page of its own. */
async function bodyOf(response: Response, read: (text: string) => unknown): Promise<unknown> {
  const text = await response.text();
  try {
    return read(text);
  } catch {
    const detail = 'The answer cannot be read: something between the node and the page may have given it.';
    throw new Problem('UNEXPECTED', response.status, detail);
  }
}

function unreachable(method: Method, path: string): Problem {
  const isChange = method !== 'GET' && path !== '/v1/session';
  const detail = isChange
    ? 'The connection was lost, so whether this was done is not known. Look before you do it again.'
    : 'The node cannot be reached.';
  return new Problem('UNREACHABLE', 0, detail);
}

/** How far the clock of the node is ahead of that of the browser. Headers tell whole seconds, so less than two is no difference. */
let clockAheadMs = 0;

function noteClock(response: Response): void {
  const told = Date.parse(response.headers.get('date') ?? '');
  if (Number.isNaN(told)) return;
  const ahead = told + 500 - Date.now();
  clockAheadMs = Math.abs(ahead) < 2_000 ? 0 : ahead;
}

/** The time as the node has it. */
export function nodeTime(): number {
  return Date.now() + clockAheadMs;
}

import { computed, signal } from '@preact/signals';
import type { KeyScope } from '../../../src/core/access.js';
import type { Session } from '../../../src/core/session.js';
import { ROOT } from '../routing/root.js';
import {
  call,
  chooseTenant,
  noteSignedIn,
  rememberedTenant,
  showOthers,
  tenant,
  whenSessionEnds,
} from './client.js';
import { Problem } from './problem.js';
import { forgetResources } from './resource.js';

/** Who is signed in. The session itself is in a cookie that this page cannot read. */

/** `unknown` until the node has said whether there is a session. */
type State =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'signed-out'; readonly reason: 'none' | 'expired' | 'left' }
  | { readonly kind: 'signed-in'; readonly session: Session };

const state = signal<State>({ kind: 'unknown' });

/** What is known about the session. */
export const sessionState = computed(() => state.value);

/** Who is signed in; null if nobody is. */
export const session = computed(() => (state.value.kind === 'signed-in' ? state.value.session : null));

/** Whose screens stay mounted under the sign-in, so that what was typed is not lost when a session ends. */
export const lastSession = signal<Session | null>(null);

function endSession(): void {
  if (state.value.kind === 'signed-in') state.value = { kind: 'signed-out', reason: 'expired' };
}

whenSessionEnds(endSession);

function enter(found: Session): void {
  noteSignedIn();
  const before = lastSession.value;
  if (before && (before.keyId !== found.keyId || before.tenant !== found.tenant)) {
    // Nothing that was read for one may be shown to another, not even until it has been read again.
    forgetResources();
    showOthers();
    chooseTenant(null);
  }
  tenant.value = found.operator ? rememberedTenant() : null;
  lastSession.value = found;
  state.value = { kind: 'signed-in', session: found };
}

/** Signs in with what somebody typed, or with the code of a link. */
export async function signIn(credential: { key: string } | { code: string }): Promise<void> {
  enter(await call<Session>('POST', '/v1/session', { body: credential }));
  tabs.postMessage('in');
}

/** Has the browser forget the session. */
export async function signOut(): Promise<void> {
  await call('DELETE', '/v1/session');
  leave();
  tabs.postMessage('out');
}

function leave(): void {
  forgetResources();
  showOthers();
  lastSession.value = null;
  chooseTenant(null);
  state.value = { kind: 'signed-out', reason: 'left' };
}

/**
 * All tabs of a browser have one cookie. When another tab signs in or out, so has this one: else it would show the things of
 * one key, and do things with the rights of another.
 */
const tabs = new BroadcastChannel(`punctual-session ${ROOT.href}`);
tabs.onmessage = ({ data }: MessageEvent<'in' | 'out'>) => {
  if (data === 'out') leave();
  else void findSession().catch(endSession);
};

/** Finds out whether somebody is signed in. */
export async function findSession(): Promise<void> {
  try {
    enter(await call<Session>('GET', '/v1/session'));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status !== 401) throw error;
    state.value = { kind: 'signed-out', reason: 'none' };
  }
}

/** The code of the link that opened the page. It leaves the address at once, because addresses are remembered and shown. */
export function takeCode(): string | null {
  const match = /^#code=([\w.~-]+)$/.exec(location.hash);
  if (location.hash.startsWith('#code')) {
    history.replaceState(null, '', location.pathname + location.search);
  }
  return match?.[1] ?? null;
}

/** Whether the session may do what needs this scope; nodes decide it anew with every request. */
export function may(scope: KeyScope | 'operator'): boolean {
  const who = session.value ?? lastSession.value;
  if (!who) return false;
  const { scopes, operator } = who;
  if (operator) return scopes.length === 0 || (scope === 'read' && scopes.includes('read'));
  if (scope === 'operator') return false;
  return scopes.includes(scope) || (scope === 'read' && scopes.includes('admin'));
}

/** Whether the session may see artifacts: they belong to no queue and no task, so a key that is restricted to some sees none. */
export function seesArtifacts(): boolean {
  const who = session.value ?? lastSession.value;
  return who !== null && who.queues === null && who.tasks === null;
}

import { auditEntry } from '../core/audit.js';
import { invalid, PunctualError } from '../core/errors.js';
import { Session as SessionSchema, SignIn, SignInCode as SignInCodeSchema } from '../core/schemas/session.js';
import type { Session, SignInCode } from '../core/session.js';
import { signSessionToken } from '../core/tokens.js';
import { VERSION } from '../core/version.js';
import { hashKey } from '../store/api-keys.js';
import { addEntry } from '../store/audit.js';
import { inTransaction } from '../store/database.js';
import { addCode, isGenuineCode, makeCode, redeemCode } from '../store/sign-in-codes.js';
import { invalidKey } from './authentication.js';
import type { Caller, KeyIdentity } from './caller.js';
import type { NodeContext } from './context.js';
import { identityOfKey } from './known-keys.js';
import { forbidden } from './restrictions.js';
import { Answer, type Call, json, type Route, route } from './route.js';

/** How long a code can be used. */
const CODE_MS = 10 * 60_000;

/** Whoever came with a key or a code, and the hash of the key, by which nodes look it up. */
interface SignedIn {
  readonly identity: KeyIdentity;
  readonly hash: Buffer;
}

/**
 * Signing in to the dashboard. A session is a signed statement about a key that the browser keeps in a cookie: no node
 * remembers it, every node checks its key with every request, and it ends with that key.
 */
export const sessionRoutes: readonly Route[] = [
  route({
    id: 'signIn',
    audit: 'session.create',
    method: 'POST',
    path: '/v1/session',
    tag: 'sessions',
    summary:
      'Sign in with a key or a one-time code: the answer sets the cookie of a session. For pages of the node itself.',
    scope: 'public',
    fromOwnPages: true,
    body: json(SignIn, { maxBytes: 4_096 }),
    answers: { 201: SessionSchema },
    idempotent: 'signing in again makes another session and ends none; a code cannot be used twice',
    run: async ({ node, body, call }) => {
      if ((body.key === undefined) === (body.code === undefined))
        throw invalid([{ pointer: '/key', detail: 'give either "key" or "code"' }]);
      const isSecure = call.isSecure;
      if (!isSecure && !node.sessionCookie.isPlainAllowed) throw insecure();
      const { clock } = node.shards[0];
      const now = clock.now();
      const { identity, hash } = await (body.key === undefined
        ? byCode(node, call, body.code!, now)
        : byKey(node, call, body.key, now));
      const { key } = identity;
      const endsAt = Math.min(now + node.config.sessionLifetime, key!.expiresAt ?? Number.POSITIVE_INFINITY);
      const session = signSessionToken(node.secret, hash, endsAt, now);
      const seconds = Math.max(1, Math.floor((endsAt - now) / 1_000));
      const cookie = node.sessionCookie.keep(session, isSecure, seconds);
      return new Answer(201, viewOf(node, identity, endsAt), { 'set-cookie': cookie });
    },
  }),
  route({
    id: 'getSession',
    method: 'GET',
    path: '/v1/session',
    tag: 'sessions',
    summary: 'Who am I: the key behind this request, what it may do, and when the session ends.',
    scope: 'key',
    answers: { 200: SessionSchema },
    run: ({ node, caller }) => {
      const identity = { ...caller, name: caller.actor, tenant: caller.operator ? undefined : caller.tenant };
      return viewOf(node, identity, caller.sessionEndsAt ?? caller.key?.expiresAt ?? null);
    },
  }),
  route({
    id: 'signOut',
    audit: { none: 'It has the browser forget its cookie, and changes nothing that nodes know.' },
    method: 'DELETE',
    path: '/v1/session',
    tag: 'sessions',
    summary: 'Sign out: the answer has the browser forget the session. For pages of the node itself.',
    scope: 'public',
    fromOwnPages: true,
    answers: { 204: 'The browser forgets the session.' },
    run: ({ node, call }) =>
      new Answer(204, undefined, { 'set-cookie': node.sessionCookie.forget(call.isSecure) }),
  }),
  route({
    id: 'createSignInCode',
    audit: { none: 'A code does nothing until somebody signs in with it, which is recorded.' },
    method: 'POST',
    path: '/v1/session/codes',
    tag: 'sessions',
    summary:
      'Make a code with which a browser signs in once, within ten minutes, with the rights of this key.',
    scope: 'key',
    answers: { 201: SignInCodeSchema },
    idempotent: 'the answer is never stored, because it has the code; one whose answer was lost expires',
    run: async ({ node, caller }): Promise<SignInCode> => {
      const keyId = keyForCodes(caller);
      const [{ pool, clock }] = node.shards;
      const now = clock.now();
      const code = makeCode(node.secret);
      if (!(await addCode(pool, node.secret, code, keyId, now, now + CODE_MS))) throw invalidKey();
      return { code, expiresAt: new Date(now + CODE_MS).toISOString() };
    },
  }),
];

/** A session must not be able to follow itself for ever. */
function keyForCodes({ key, sessionEndsAt }: Caller): string {
  if (!key) throw forbidden('A program in the process of a node has no key that a code could stand for.');
  if (sessionEndsAt !== undefined) throw forbidden('Codes are made with a key, not with a session.');
  return key.id;
}

async function byKey(node: NodeContext, call: Call, key: string, now: number): Promise<SignedIn> {
  const credential = key.startsWith('pk_') ? await node.authentication.authenticate(key) : null;
  if (credential === null || !('operator' in credential) || !credential.key) throw invalidKey();
  call.countFor(credential.key.id);
  await inTransaction(node.shards[0].pool, (db) => addEntry(db, entryOf(call, now, credential, 'key'), null));
  node.shards[0].currentLeader()?.noteEntry();
  return { identity: credential, hash: hashKey(node.secret, key) };
}

async function byCode(node: NodeContext, call: Call, code: string, now: number): Promise<SignedIn> {
  const found = !isGenuineCode(node.secret, code)
    ? null
    : await inTransaction(node.shards[0].pool, async (db) => {
        const row = await redeemCode(db, node.secret, code, now);
        if (row) await addEntry(db, entryOf(call, now, identityOfKey(row), 'code'), null);
        return row;
      });
  if (!found) {
    const detail = 'The code was used, or is too old; `punctual open` makes another.';
    throw new PunctualError('UNAUTHENTICATED', detail);
  }
  node.shards[0].currentLeader()?.noteEntry();
  return { identity: identityOfKey(found), hash: found.hash };
}

/** The caller came without a credential, so the author of the entry is the key that was signed in with. */
function entryOf({ author }: Call, now: number, { name, tenant, key }: KeyIdentity, by: 'key' | 'code') {
  const who = { ...author, keyId: key!.id, keyName: name };
  const subject = { kind: 'session' as const, name: key!.id, tenant: tenant ?? null };
  return auditEntry(who, now, 'session.create', subject, { before: null, after: { by } });
}

function viewOf(
  { nodeId, sessionCookie }: NodeContext,
  {
    name,
    operator,
    tenant,
    key,
  }: Pick<KeyIdentity, 'name' | 'operator' | 'key'> & { tenant?: string | undefined },
  expiresAt: number | null,
): Session {
  return {
    ...{ cluster: sessionCookie.cluster, node: nodeId, version: VERSION },
    ...{ tenant: tenant ?? null, operator, scopes: key?.scopes ?? [] },
    ...{ queues: key?.limits?.queues ?? null, tasks: key?.limits?.tasks ?? null },
    ...{ name, keyId: key?.id ?? null },
    expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
  };
}

function insecure(): PunctualError {
  return new PunctualError(
    'INSECURE_SIGN_IN',
    'The session would go over the network in the clear: open the dashboard over HTTPS, or on the machine of the node.',
  );
}

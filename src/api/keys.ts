import {
  areWithin,
  checkOperatorScopes,
  type KeyInput as Input,
  type KeyLimits,
  type KeyScope,
  type KeyView as View,
} from '../core/access.js';
import { type AuditAction, type AuditEntry, auditEntry } from '../core/audit.js';
import { parseDuration } from '../core/duration.js';
import { invalid, PunctualError } from '../core/errors.js';
import { parseMoment } from '../core/moment.js';
import { KeyInput, KeyPage, KeyRotation, KeyView, NewKeyView } from '../core/schemas/key.js';
import { IdPageQuery, IdPath } from '../core/schemas/query.js';
import { uuidv7 } from '../core/uuid.js';
import {
  addKey,
  deleteKey,
  getKey,
  hashKey,
  type KeyOwner,
  type KeyRow,
  listKeys,
  MAX_KEYS,
  makeKey,
  rotateKey,
} from '../store/api-keys.js';
import { addEntry } from '../store/audit.js';
import { inTransaction } from '../store/database.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { forbidden } from './restrictions.js';
import { type Call, json, type Route, route } from './route.js';

const OLD_KEY_MS = 24 * 3_600_000;
/** The longest that an old key stays valid after a rotation. */
const MAX_OLD_KEY_MS = 90 * 86_400_000;

/**
 * Making, listing, revoking and rotating keys. They are kept by the first shard, and any node changes them: the database
 * counts the changes, and all nodes look at that count. A tenant's `admin` key manages the keys of its tenant and grants no
 * more than it has itself.
 */
export const keyRoutes: readonly Route[] = [
  route({
    id: 'createKey',
    audit: 'key.create',
    method: 'POST',
    path: '/v1/keys',
    tag: 'keys',
    summary: 'Make a key. The key itself is in this answer and nowhere else.',
    scope: 'admin',
    body: json(KeyInput),
    answers: { 201: NewKeyView },
    idempotent: 'the answer is never stored, because it has the key; revoke the key whose answer was lost',
    run: async ({ node, caller, body, call }) => {
      const [{ pool, clock }] = node.shards;
      const now = clock.now();
      const rights = rightsOf(caller, body, now);
      const key = makeKey(node.secret, rights.tenant === null);
      const made = {
        id: uuidv7(now),
        name: body.name,
        hash: hashKey(node.secret, key),
        createdBy: caller.actor,
      };
      const added = await inTransaction(pool, async (db) => {
        const row = await addKey(db, { ...made, ...rights }, now);
        if (row) await addEntry(db, entryOf(call, now, 'key.create', null, row), null);
        return row;
      });
      noteEntry(node);
      if (!added) throw tooMany();
      return { ...viewOf(added), key };
    },
  }),
  route({
    id: 'listKeys',
    method: 'GET',
    path: '/v1/keys',
    tag: 'keys',
    summary: 'List the keys, newest first; expired ones are shown for 30 days, revoked ones are gone.',
    scope: 'admin',
    query: IdPageQuery,
    answers: { 200: KeyPage },
    run: async ({ node, caller, query: { limit, after } }) => {
      const rows = await listKeys(node.shards[0].pool, ownerOf(caller), after ?? null, limit + 1);
      const data = rows.slice(0, limit).map(viewOf);
      return { data, next: rows.length > limit ? data.at(-1)!.id : null };
    },
  }),
  route({
    id: 'getKey',
    method: 'GET',
    path: '/v1/keys/:id',
    tag: 'keys',
    summary: 'Read what a key may do; the key itself is not shown.',
    scope: 'admin',
    params: IdPath,
    answers: { 200: KeyView },
    run: async ({ node, caller, params: { id } }) => viewOf(await mustFind(node, caller, id)),
  }),
  route({
    id: 'revokeKey',
    audit: 'key.revoke',
    method: 'DELETE',
    path: '/v1/keys/:id',
    tag: 'keys',
    summary: 'Revoke a key: all nodes refuse it within about a second.',
    scope: 'admin',
    params: IdPath,
    answers: { 204: 'The key is revoked.' },
    run: async ({ node, caller, params: { id }, call }) => {
      const [{ pool, clock }] = node.shards;
      const old = await mustFind(node, caller, id);
      mustReach(caller, old);
      const isGone = await inTransaction(pool, async (db) => {
        const deleted = await deleteKey(db, id, ownerOf(caller));
        if (deleted) await addEntry(db, entryOf(call, clock.now(), 'key.revoke', old, null), null);
        return deleted;
      });
      if (!isGone) throw notFound(id);
      noteEntry(node);
      node.tellOfKeys();
    },
  }),
  route({
    id: 'rotateKey',
    audit: 'key.rotate',
    method: 'POST',
    path: '/v1/keys/:id/rotate',
    tag: 'keys',
    summary: 'Make the next key with the same rights; the old one stays valid for a while.',
    scope: 'admin',
    params: IdPath,
    body: json(KeyRotation, { optional: true }),
    answers: { 201: NewKeyView },
    idempotent: 'the answer is never stored, because it has the key; revoke the key whose answer was lost',
    run: async ({ node, caller, params: { id }, body, call }) => {
      const [{ pool, clock }] = node.shards;
      const now = clock.now();
      const old = await mustFind(node, caller, id);
      mustGrant(caller, old);
      const oldMs = body.oldExpiresIn === undefined ? OLD_KEY_MS : parseDuration(body.oldExpiresIn)!;
      if (oldMs > MAX_OLD_KEY_MS)
        throw invalid([{ pointer: '/oldExpiresIn', detail: 'must be a duration of at most 90d' }]);
      const expiresAt =
        body.expiresAt === undefined
          ? earlier(old.expiresAt, caller.key?.expiresAt ?? null)
          : expiryOf(caller, body.expiresAt, now);
      const key = makeKey(node.secret, old.operator);
      const next = { id: uuidv7(now), hash: hashKey(node.secret, key), expiresAt, createdBy: caller.actor };
      const added = await inTransaction(pool, async (db) => {
        const row = await rotateKey(db, id, next, now + oldMs, now);
        if (row) await addEntry(db, entryOf(call, now, 'key.rotate', old, row), null);
        return row;
      });
      noteEntry(node);
      if (!added) {
        const { expiresAt: end } = await mustFind(node, caller, id);
        if (end === null || end > now) throw tooMany();
        throw new PunctualError('KEY_EXPIRED', `Key ${id} has expired; make a new one.`);
      }
      node.tellOfKeys();
      return { ...viewOf(added), key };
    },
  }),
];

/** The entry of the audit about a key: the key before and after, never the key itself. */
function entryOf(
  { author }: Call,
  now: number,
  action: AuditAction,
  before: KeyRow | null,
  after: KeyRow | null,
): AuditEntry {
  const { id, tenant } = (before ?? after)!;
  const views = { before: before && viewOf(before), after: after && viewOf(after) };
  return auditEntry(author, now, action, { kind: 'key', name: id, tenant }, views);
}

/** Has the entry chained soon if this node leads; another leader finds it within a minute. */
function noteEntry({ shards }: NodeContext): void {
  shards[0].currentLeader()?.noteEntry();
}

/** Whose keys a caller manages. */
function ownerOf({ tenant, allTenants }: Caller): KeyOwner {
  return allTenants ? null : tenant;
}

async function mustFind(node: NodeContext, caller: Caller, id: string): Promise<KeyRow> {
  const row = await getKey(node.shards[0].pool, id, ownerOf(caller));
  if (!row) throw notFound(id);
  return row;
}

/** What a key may do. */
interface Rights extends KeyLimits {
  readonly tenant: string | null;
  readonly scopes: readonly KeyScope[];
}

/** The rights of a new key, which are never more than those of its maker. */
function rightsOf(caller: Caller, input: Input, now: number): Rights & { readonly expiresAt: number | null } {
  const { scopes = [], tenant = caller.tenant, operator = false } = input;
  const expiresAt = expiryOf(caller, input.expiresAt, now);
  if (operator) {
    if (!caller.operator) throw forbidden('Only an operator may make keys of operators.');
    const given = (['queues', 'tasks', 'tenant'] as const).find((field) => input[field] !== undefined);
    if (given)
      throw invalid([{ pointer: `/${given}`, detail: "an operator's key is for everything; leave it out" }]);
    checkOperatorScopes(scopes);
    return { tenant: null, scopes, queues: null, tasks: null, expiresAt };
  }
  if (scopes.length === 0) throw invalid([{ pointer: '/scopes', detail: 'is missing' }]);
  // What the maker is restricted to holds for what it makes, unless that is restricted further.
  const own = caller.key?.limits;
  const queues = input.queues ?? own?.queues ?? null;
  const tasks = input.tasks ?? own?.tasks ?? null;
  const rights = { tenant, scopes, queues, tasks };
  mustGrant(caller, rights);
  return { ...rights, expiresAt };
}

/** When a new key expires. One that is made with a key that expires does so no later. */
function expiryOf({ key }: Caller, given: string | undefined, now: number): number | null {
  const own = key?.expiresAt ?? null;
  if (given === undefined) return own;
  const at = parseMoment(given)!;
  if (at <= now) throw invalid([{ pointer: '/expiresAt', detail: 'lies in the past' }]);
  if (own !== null && at > own) throw forbidden('The key that makes it expires before that.');
  return at;
}

/** The earlier of two ends; null is none. */
function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

/** Refuses to grant what the caller may not do itself. */
function mustGrant(caller: Caller, rights: Rights): void {
  if (caller.operator) return;
  const { tenant, scopes } = rights;
  if (tenant !== caller.tenant) throw forbidden('The key belongs to another tenant.');
  const own = caller.key?.scopes ?? [];
  const beyond = scopes.find((scope) => !own.includes(scope) && !(scope === 'read' && own.includes('admin')));
  if (beyond !== undefined) throw forbidden(`A key without the scope ${beyond} cannot grant it.`);
  mustReach(caller, rights);
}

/** A restricted key has to do with keys for its own queues and tasks only. Whatever the scopes of a key, it can be ended. */
function mustReach(caller: Caller, { queues, tasks }: Pick<Rights, 'queues' | 'tasks'>): void {
  const limits = caller.key?.limits;
  if (limits && !areWithin({ queues, tasks }, limits))
    throw forbidden('A restricted key makes, rotates and revokes keys for its own queues and tasks only.');
}

function viewOf({ id, name, tenant, operator, scopes, queues, tasks, ...row }: KeyRow): View {
  const time = (at: number | null) => at && new Date(at).toISOString();
  return {
    ...{ id, name, tenant, operator, scopes, queues, tasks },
    expiresAt: time(row.expiresAt) as string | null,
    createdAt: new Date(row.createdAt).toISOString(),
    createdBy: row.createdBy,
    lastUsedAt: time(row.lastUsedAt) as string | null,
  };
}

function tooMany(): PunctualError {
  return new PunctualError('QUOTA_EXCEEDED', `There are ${MAX_KEYS} keys already; revoke some.`);
}

function notFound(id: string): PunctualError {
  return new PunctualError('KEY_NOT_FOUND', `There is no key ${id}.`);
}

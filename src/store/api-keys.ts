import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { KeyLimits, KeyScope } from '../core/access.js';
import { LAST_UUID } from '../core/uuid.js';
import { type Queryable, run, statement } from './database.js';

/**
 * Keys: 256 random bits after a readable prefix, stored as a keyed hash, shown once. A seal at the end, made with the
 * cluster's secret, exposes made-up keys without a query, so that strangers cannot keep the database busy. A revoked key is
 * deleted. Every change raises `keys_version` by a trigger, which is what nodes look at.
 */

const OPERATOR_PREFIX = 'pk_op_';
const TENANT_PREFIX = 'pk_tn_';
const SEAL_BYTES = 6;
const SEALED = /^([a-z_]+_[\w-]{43})([\w-]{8})$/;

/** Keys of a tenant, or of operators; one more is refused. */
export const MAX_KEYS = 10_000;
/** How long expired keys are shown. */
const KEPT_AFTER_EXPIRY_MS = 30 * 86_400_000;
/** Expired keys that are deleted whenever one is made. */
const FORGOTTEN_AT_ONCE = 100;

/** A key without its hash. */
export const COLUMNS = `id, name, operator, tenant, scopes, queues, tasks, expires_at AS "expiresAt", created_at AS "createdAt",
      created_by AS "createdBy", last_used_at AS "lastUsedAt"`;

/**
 * The version and the keys in one statement, and so of one moment. Looked up by equality: timing attacks gain nothing
 * against the keyed hash of 256 random bits.
 */
const FIND_KEYS = statement(
  'find-api-keys',
  `
    SELECT v.version, k.* FROM punctual.keys_version v LEFT JOIN (
      SELECT hash, ${COLUMNS} FROM punctual.api_keys) k ON k.hash = ANY ($1::bytea[]) WHERE v.one`,
);

/** Deletes keys of an owner that expired before the moment. */
const forgotten = (owner: string, before: string) => `forgotten AS (
      DELETE FROM punctual.api_keys WHERE id = ANY (ARRAY(
        SELECT id FROM punctual.api_keys
        WHERE coalesce(tenant, '') = ${owner} AND expires_at < ${before}::bigint LIMIT ${FORGOTTEN_AT_ONCE}))
    )`;

/** Whether an owner may have one more key. */
const hasRoom = (owner: string) => `(SELECT count(*) FROM (
      SELECT 1 FROM punctual.api_keys WHERE coalesce(tenant, '') = ${owner} LIMIT ${MAX_KEYS}) k) < ${MAX_KEYS}`;

const ADD_KEY = statement(
  'add-api-key',
  `
    WITH ${forgotten("coalesce($5::text, '')", '$12')}
    INSERT INTO punctual.api_keys
      (id, name, hash, operator, tenant, scopes, queues, tasks, expires_at, created_at, created_by)
    SELECT $1::uuid, $2::text, $3::bytea, $4::boolean, $5::text, $6::text[], $7::text[], $8::text[], $9::bigint,
      $10::bigint, $11::text
    WHERE ${hasRoom("coalesce($5::text, '')")}
    RETURNING ${COLUMNS}`,
);

const OWNER_OF_OLD = `(SELECT coalesce(o.tenant, '') FROM punctual.api_keys o WHERE o.id = $1::uuid)`;

/** The old key ends and the next one begins together, or neither does. */
const ROTATE_KEY = statement(
  'rotate-api-key',
  `
    WITH ${forgotten(OWNER_OF_OLD, '$8')}, old AS (
      UPDATE punctual.api_keys SET expires_at = least(expires_at, $4::bigint)
      WHERE id = $1::uuid AND (expires_at IS NULL OR expires_at > $6::bigint) AND ${hasRoom(OWNER_OF_OLD)}
      RETURNING name, operator, tenant, scopes, queues, tasks
    )
    INSERT INTO punctual.api_keys
      (id, name, hash, operator, tenant, scopes, queues, tasks, expires_at, created_at, created_by)
    SELECT $2::uuid, name, $3::bytea, operator, tenant, scopes, queues, tasks, $5::bigint, $6::bigint, $7::text FROM old
    RETURNING ${COLUMNS}`,
);

/** $2 is null for all keys. */
const OF_OWNER = `($2::text IS NULL OR tenant = $2)`;

const GET_KEY = statement(
  'get-api-key',
  `SELECT ${COLUMNS} FROM punctual.api_keys WHERE id = $1::uuid AND ${OF_OWNER}`,
);

const LIST_KEYS = statement(
  'list-api-keys',
  `
    SELECT ${COLUMNS} FROM punctual.api_keys WHERE id < $1::uuid ORDER BY id DESC LIMIT $2::int`,
);

const LIST_KEYS_OF_TENANT = statement(
  'list-api-keys-of-tenant',
  `
    SELECT ${COLUMNS} FROM punctual.api_keys WHERE coalesce(tenant, '') = $3::text AND id < $1::uuid
    ORDER BY id DESC LIMIT $2::int`,
);

const DELETE_KEY = statement(
  'delete-api-key',
  `DELETE FROM punctual.api_keys WHERE id = $1::uuid AND ${OF_OWNER} RETURNING id`,
);

const USE_KEYS = statement(
  'use-api-keys',
  `
    UPDATE punctual.api_keys k SET last_used_at = $2::bigint
    WHERE k.id = ANY ($1::uuid[]) AND (k.last_used_at IS NULL OR k.last_used_at < $2::bigint)`,
);

/** A stored key, without its hash. */
export interface KeyRow extends KeyLimits, Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly operator: boolean;
  readonly tenant: string | null;
  readonly scopes: readonly KeyScope[];
  readonly expiresAt: number | null;
  readonly createdAt: number;
  readonly createdBy: string | null;
  readonly lastUsedAt: number | null;
}

/** Whose keys: those of a tenant, or of everybody, operators among them (null). */
export type KeyOwner = string | null;

/** The hash under which a key is stored. */
export function hashKey(secret: Buffer, key: string): Buffer {
  return createHmac('sha256', secret).update(key).digest();
}

function sealOf(secret: Buffer, unsealed: string): Buffer {
  return createHmac('sha256', secret).update(`seal of ${unsealed}`).digest().subarray(0, SEAL_BYTES);
}

/** A new key, for an operator or for a tenant. */
export function makeKey(secret: Buffer, operator = true): string {
  const unsealed = (operator ? OPERATOR_PREFIX : TENANT_PREFIX) + randomBytes(32).toString('base64url');
  return sealed(secret, unsealed);
}

/** A text with its seal. */
export function sealed(secret: Buffer, unsealed: string): string {
  return unsealed + sealOf(secret, unsealed).toString('base64url');
}

/** Whether a key was made with this secret; it may have been revoked since. */
export function isGenuineKey(secret: Buffer, key: string): boolean {
  return (key.startsWith(OPERATOR_PREFIX) || key.startsWith(TENANT_PREFIX)) && isSealed(secret, key);
}

/** Whether a text of 256 random bits after a prefix has the seal that this secret makes. */
export function isSealed(secret: Buffer, text: string): boolean {
  const [, unsealed, seal] = SEALED.exec(text) ?? [];
  if (unsealed === undefined || seal === undefined) return false;
  return timingSafeEqual(sealOf(secret, unsealed), Buffer.from(seal, 'base64url'));
}

/** Those of the keys that the database knows, by hash (base64), and how often keys were changed by then. */
export async function findKeys(
  db: Queryable,
  hashes: readonly Buffer[],
): Promise<{ readonly version: number; readonly found: ReadonlyMap<string, KeyRow> }> {
  type Row = Record<string, unknown> & { readonly version: number; readonly hash: Buffer | null };
  const rows = await run<Row>(db, FIND_KEYS, [hashes]);
  const found = new Map<string, KeyRow>();
  for (const { version: _, hash, ...row } of rows) {
    if (hash) found.set(hash.toString('base64'), row as unknown as KeyRow);
  }
  return { version: Number(rows[0]?.version ?? 0), found };
}

/** What a new key is stored with. */
export interface NewKey extends KeyLimits {
  readonly id: string;
  readonly name: string;
  readonly hash: Buffer;
  readonly tenant: string | null;
  readonly scopes: readonly KeyScope[];
  readonly expiresAt: number | null;
  readonly createdBy: string | null;
}

/** Stores a key; null when its owner has as many as there may be. A key without a tenant is an operator's. */
export async function addKey(db: Queryable, key: NewKey, now: number): Promise<KeyRow | null> {
  const rows = await run<KeyRow>(db, ADD_KEY, [
    ...[key.id, key.name, key.hash, key.tenant === null, key.tenant, key.scopes, key.queues, key.tasks],
    ...[key.expiresAt, now, key.createdBy, now - KEPT_AFTER_EXPIRY_MS],
  ]);
  return rows[0] ?? null;
}

/**
 * Stores the next key of one that has not expired, with the same rights; null when that is not there any more, or when its owner has
 * as many keys as there may be.
 */
export async function rotateKey(
  db: Queryable,
  oldId: string,
  next: Pick<NewKey, 'id' | 'hash' | 'expiresAt' | 'createdBy'>,
  oldExpiresAt: number,
  now: number,
): Promise<KeyRow | null> {
  const values = [
    ...[oldId, next.id, next.hash, oldExpiresAt, next.expiresAt, now, next.createdBy],
    now - KEPT_AFTER_EXPIRY_MS,
  ];
  return (await run<KeyRow>(db, ROTATE_KEY, values))[0] ?? null;
}

/** A key of this owner. */
export async function getKey(db: Queryable, id: string, owner: KeyOwner): Promise<KeyRow | null> {
  return (await run<KeyRow>(db, GET_KEY, [id, owner]))[0] ?? null;
}

/** Keys of this owner with ids below the given one, newest first. */
export function listKeys(
  db: Queryable,
  owner: KeyOwner,
  below: string | null,
  limit: number,
): Promise<KeyRow[]> {
  const values = [below ?? LAST_UUID, limit];
  if (owner === null) return run(db, LIST_KEYS, values);
  return run(db, LIST_KEYS_OF_TENANT, [...values, owner]);
}

/** Deletes a key of this owner; answers whether there was one. */
export async function deleteKey(db: Queryable, id: string, owner: KeyOwner): Promise<boolean> {
  return (await run(db, DELETE_KEY, [id, owner])).length > 0;
}

/** Records that keys were used in an hour, given as its first moment. */
export async function useKeys(db: Queryable, ids: readonly string[], hour: number): Promise<void> {
  await run(db, USE_KEYS, [ids, hour]);
}

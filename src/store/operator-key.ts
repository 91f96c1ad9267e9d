import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { uuidv7 } from '../core/uuid.js';
import { readClusterState } from './cluster-state.js';
import { type Queryable, run, statement } from './database.js';
import { connect } from './migrate.js';

/**
 * Operator keys: 256 random bits after a readable prefix, stored as a keyed hash, shown once. A seal at the end, made
 * with the cluster's secret, exposes made-up keys without a query, so that strangers cannot keep the database busy.
 */

const PREFIX = 'pk_op_';
const SEAL_BYTES = 6;
const KEY = /^(pk_op_[\w-]{43})([\w-]{8})$/;

const ADD_KEY = statement(
  'add-api-key',
  'INSERT INTO punctual.api_keys (id, name, hash, operator, created_at) VALUES ($1, $2, $3, true, $4)',
);

/** Looked up by equality: timing attacks gain nothing against the keyed hash of 256 random bits. */
const FIND_KEYS = statement(
  'find-api-keys',
  'SELECT hash, id, name, operator FROM punctual.api_keys WHERE hash = ANY ($1::bytea[])',
);

/** A stored key. */
export interface KeyRow extends Record<string, unknown> {
  readonly hash: Buffer;
  readonly id: string;
  readonly name: string;
  readonly operator: boolean;
}

/** The hash under which a key is stored. */
export function hashKey(secret: Buffer, key: string): Buffer {
  return createHmac('sha256', secret).update(key).digest();
}

function sealOf(secret: Buffer, unsealed: string): Buffer {
  return createHmac('sha256', secret).update(`seal of ${unsealed}`).digest().subarray(0, SEAL_BYTES);
}

/** A new key. */
export function makeKey(secret: Buffer): string {
  const unsealed = PREFIX + randomBytes(32).toString('base64url');
  return unsealed + sealOf(secret, unsealed).toString('base64url');
}

/** Whether a key was made with this secret; it may have been revoked since. */
export function isGenuineKey(secret: Buffer, key: string): boolean {
  const [, unsealed, seal] = KEY.exec(key) ?? [];
  if (unsealed === undefined || seal === undefined) return false;
  return timingSafeEqual(sealOf(secret, unsealed), Buffer.from(seal, 'base64url'));
}

/** The rows of those keys that the database knows. */
export function findKeys(db: Queryable, hashes: readonly Buffer[]): Promise<KeyRow[]> {
  return run<KeyRow>(db, FIND_KEYS, [hashes]);
}

async function withClient<T>(databaseUrl: string, work: (db: Queryable) => Promise<T>): Promise<T> {
  const client = await connect(databaseUrl);
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Makes an operator key, with access to the database as the only credential. The key is returned this once. */
export function createOperatorKey(
  databaseUrl: string,
  name: string,
): Promise<{ id: string; name: string; key: string }> {
  return withClient(databaseUrl, async (db) => {
    const { secret } = await readClusterState(db);
    const key = makeKey(secret);
    const now = Date.now();
    const id = uuidv7(now);
    await run(db, ADD_KEY, [id, name, hashKey(secret, key), now]);
    return { id, name, key };
  });
}

/** Whether the database knows this operator key. */
export function verifyOperatorKey(databaseUrl: string, key: string): Promise<boolean> {
  return withClient(databaseUrl, async (db) => {
    const { secret } = await readClusterState(db);
    const [row] = await findKeys(db, [hashKey(secret, key)]);
    return row?.operator ?? false;
  });
}

import { createHmac, randomBytes } from 'node:crypto';
import pg from 'pg';
import { uuidv7 } from '../core/uuid.js';
import { readClusterState } from './cluster-state.js';
import { type Queryable, run, type Statement } from './database.js';

/** Operator keys: 256 random bits behind a readable prefix, kept as a keyed hash, shown once. */

const PREFIX = 'pk_op_';

const ADD_KEY: Statement = {
  name: 'add-api-key',
  text: 'INSERT INTO punctual.api_keys (id, name, hash, operator, created_at) VALUES ($1, $2, $3, true, $4)',
};

/** The hash of 256 random bits is looked up by equality: guessing at timing gains nothing against a keyed hash. */
const FIND_KEY: Statement = {
  name: 'find-api-key',
  text: 'SELECT id, name, operator FROM punctual.api_keys WHERE hash = $1',
};

export interface KeyRow extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly operator: boolean;
}

function hashKey(secret: Buffer, key: string): Buffer {
  return createHmac('sha256', secret).update(key).digest();
}

/** The key's row, or null when the database does not know it. */
export async function findKeyByText(db: Queryable, secret: Buffer, key: string): Promise<KeyRow | null> {
  const rows = await run<KeyRow>(db, FIND_KEY, [hashKey(secret, key)]);
  return rows[0] ?? null;
}

async function withClient<T>(databaseUrl: string, work: (db: Queryable) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Makes an operator key; whoever can reach the database may. The key is returned this once. */
export function createOperatorKey(
  databaseUrl: string,
  name: string,
): Promise<{ id: string; name: string; key: string }> {
  return withClient(databaseUrl, async (db) => {
    const { secret } = await readClusterState(db);
    const key = PREFIX + randomBytes(32).toString('base64url');
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
    return (await findKeyByText(db, secret, key))?.operator ?? false;
  });
}

import { uuidv7 } from '../core/uuid.js';
import { addKey, findKeys, hashKey, makeKey } from './api-keys.js';
import { readClusterState } from './cluster-state.js';
import type { Queryable } from './database.js';
import { connect } from './migrate.js';

/** Operator keys by those who have access to the database. */

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
    const rights = { tenant: null, scopes: [], queues: null, tasks: null, expiresAt: null, createdBy: null };
    const added = await addKey(db, { id, name, hash: hashKey(secret, key), ...rights }, now);
    if (!added) throw new Error('there are too many operator keys; revoke some');
    return { id, name, key };
  });
}

/** Whether the database knows this operator key. */
export function verifyOperatorKey(databaseUrl: string, key: string): Promise<boolean> {
  return withClient(databaseUrl, async (db) => {
    const { secret } = await readClusterState(db);
    const { found } = await findKeys(db, [hashKey(secret, key)]);
    const [row] = found.values();
    if (!row?.operator) return false;
    return row.expiresAt === null || Number(row.expiresAt) > Date.now();
  });
}

import type pg from 'pg';
import type { KeyScope } from '../core/access.js';
import { auditEntry } from '../core/audit.js';
import { uuidv7 } from '../core/uuid.js';
import { addKey, findKeys, hashKey, makeKey } from './api-keys.js';
import { addEntry } from './audit.js';
import { databaseTime, readClusterState } from './cluster-state.js';
import type { Queryable } from './database.js';
import { connect } from './migrate.js';

/** Operator keys by those who have access to the database. */

async function withClient<T>(databaseUrl: string, work: (db: Queryable) => Promise<T>): Promise<T> {
  const client = await connect(databaseUrl);
  try {
    return await work(unnamed(client));
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Statements without their names, which a pooler in transaction mode would keep in the sessions of others. */
function unnamed(client: pg.Client): Queryable {
  const query = (statement: string | { text: string; values?: unknown[] }, values?: unknown[]) => {
    if (typeof statement === 'string') return client.query(statement, values);
    const { name: _, ...rest } = statement as pg.QueryConfig;
    return client.query(rest);
  };
  return { query };
}

/** Whom the audit names for what was done with access to the database alone. */
const DATABASE_ACCESS = { keyId: null, keyName: 'database access', address: null, requestId: null };

/**
 * Makes an operator key, with access to the database as the only credential. Without scopes it may do everything. The key is
 * returned this once.
 */
export function createOperatorKey(
  databaseUrl: string,
  name: string,
  scopes: readonly KeyScope[] = [],
): Promise<{ id: string; name: string; key: string }> {
  return withClient(databaseUrl, async (db) => {
    const { secret } = await readClusterState(db);
    const key = makeKey(secret);
    // The clock of the computer where somebody runs a command may be wrong; the audit and its retention go by the database's.
    const now = Math.floor(await databaseTime(db));
    const id = uuidv7(now);
    const rights = { tenant: null, scopes, queues: null, tasks: null, expiresAt: null, createdBy: null };
    // Rolled back with the connection if anything fails.
    await db.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    const added = await addKey(db, { id, name, hash: hashKey(secret, key), ...rights }, now);
    if (!added) throw new Error('there are too many operator keys; revoke some');
    const subject = { kind: 'key', name: id, tenant: null } as const;
    const after = { id, name, operator: true, scopes };
    await addEntry(db, auditEntry(DATABASE_ACCESS, now, 'key.create', subject, { after }), null);
    await db.query('COMMIT');
    return { id, name, key };
  });
}

/** Whether the database knows this operator key, and it may do everything. */
export function verifyOperatorKey(databaseUrl: string, key: string): Promise<boolean> {
  return withClient(databaseUrl, async (db) => {
    const { secret } = await readClusterState(db);
    const { found } = await findKeys(db, [hashKey(secret, key)]);
    const [row] = found.values();
    if (!row?.operator || row.scopes.length > 0) return false;
    return row.expiresAt === null || Number(row.expiresAt) > Math.floor(await databaseTime(db));
  });
}

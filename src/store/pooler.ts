import type pg from 'pg';
import { PunctualError } from '../core/errors.js';
import { openBriefly, type SettingsBy } from './database.js';

/**
 * What stands between a node and Postgres. Nodes need sessions of their own: they set planner options and deadlines for
 * each session, and prepare statements. A pooler that gives each transaction another session (PgBouncer in transaction
 * mode) would spread these over the sessions of others, so nodes refuse it at their start. One that keeps a session for
 * each client (session mode) will do; it takes no settings at the start of a connection, so statements set them.
 */

/** How often two connections are compared. In transaction mode nearly every comparison shows it. */
const COMPARISONS = 4;

/** How the connections of a node get their settings; throws DATABASE_POOLED where no connection keeps its session. */
export async function findSettingsBy(databaseUrl: string): Promise<SettingsBy> {
  const client = await open(databaseUrl);
  try {
    const pid = await backendPid(client);
    if (pid === announcedPid(client)) return 'startup';
    const other = await open(databaseUrl);
    try {
      for (let i = 0; i < COMPARISONS; i++) {
        const others = await backendPid(other);
        // Twice: a pooler that takes its sessions in turn would give each of two clients the same one again and again.
        const own = [await backendPid(client), await backendPid(client)];
        if (others === pid || own.some((each) => each !== pid)) throw transactionPooler();
      }
    } finally {
      await other.end().catch(() => undefined);
    }
    return 'statement';
  } finally {
    await client.end().catch(() => undefined);
  }
}

function transactionPooler(): PunctualError {
  return new PunctualError(
    'DATABASE_POOLED',
    'The database URL leads to a pooler that gives every transaction another session, such as PgBouncer with pool_mode = transaction. Punctual needs sessions of its own, for its settings and prepared statements. Give nodes and commands the address of Postgres itself, or of a pooler with pool_mode = session. Programs may go on submitting jobs inside their transactions through this one.',
  );
}

function open(databaseUrl: string): Promise<pg.Client> {
  // A pooler with no session left lets the statement wait.
  return openBriefly(databaseUrl, { query_timeout: 10_000, application_name: 'punctual' });
}

async function backendPid(client: pg.Client): Promise<number> {
  return (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid as number;
}

/**
 * The id that was sent at the start of a connection: a server sends the id of the backend that serves it, a pooler one
 * of its own. The driver keeps it to cancel statements.
 */
export function announcedPid(connection: pg.Client): number | null {
  return (connection as pg.Client & { readonly processID?: number | null }).processID ?? null;
}

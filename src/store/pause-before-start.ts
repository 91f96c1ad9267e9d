import { explainDatabaseError, openConnection, run, type SettingsBy, statement } from './database.js';
import { LOCK_LEASES } from './lease.js';

/** How long to wait for the writes of a leader that is at work. */
const PATIENCE_MS = 10_000;

/**
 * A leader keeps the switch in memory, so setting it is not enough: the present term ends, too, and whoever takes the
 * next one reads the switch. In a copy of a database the lease may still name the leader of the original.
 */
const PAUSE = statement(
  'pause-before-start',
  `
    WITH ended AS (UPDATE punctual.leases SET epoch = epoch + 1, expires_at = 'epoch', session_pid = NULL)
    UPDATE punctual.cluster SET paused = true`,
);

/** Pauses dispatch in a database that nobody may lead yet, so that no job starts before somebody has looked at it. */
export async function pauseBeforeStart(databaseUrl: string, settingsBy: SettingsBy): Promise<void> {
  const connection = await openConnection(databaseUrl, {
    applicationName: 'punctual pause',
    hot: false,
    statementTimeoutMs: PATIENCE_MS,
    lockTimeoutMs: PATIENCE_MS,
    idleInTransactionTimeoutMs: PATIENCE_MS,
    settingsBy,
  });
  try {
    await connection.query('BEGIN');
    await connection.query(LOCK_LEASES);
    await run(connection, PAUSE, []);
    await connection.query('COMMIT');
  } catch (error) {
    throw explainDatabaseError(error);
  } finally {
    await connection.end().catch(() => undefined);
  }
}

import type { Pool } from './database.js';
import { sqlState } from './database.js';
import { leaderTransaction, type TermKey } from './leader-statement.js';
import { keepPartitions, partitionsBefore } from './partitions.js';

/**
 * Old days leave as whole partitions. DETACH waits for readers, and everybody else would wait behind it, so it
 * gives up after 50 ms and is tried again on the next pass; the detached table is dropped when nobody sees it.
 */
const LOCK_TIMEOUT = `SET LOCAL lock_timeout = '50ms'`;

/** SQLSTATE of a lock that was not to be had in time. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Makes the partitions of the days ahead. */
export async function makePartitionsAhead(pool: Pool, term: TermKey, now: number): Promise<void> {
  await leaderTransaction(pool, term, async (db) => {
    await keepPartitions(db, now);
  });
}

/** Keys removed in one transaction: a leader's transactions must be short. */
const KEYS_PER_STEP = 5_000;

/** Removes days that lie before the moment, and the keys of their jobs; answers how many were removed. */
export async function removeOldDays(pool: Pool, term: TermKey, before: number): Promise<number> {
  let removed = 0;
  for (const { table, name } of await partitionsBefore(pool, before)) {
    if (table === 'job_history') await removeKeys(pool, term, name);
    try {
      await leaderTransaction(pool, term, async (db) => {
        await db.query(LOCK_TIMEOUT);
        await db.query(`ALTER TABLE punctual.${table} DETACH PARTITION punctual.${name}`);
        await db.query(`DROP TABLE punctual.${name}`);
      });
      removed += 1;
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    }
  }
  return removed;
}

async function removeKeys(pool: Pool, term: TermKey, partition: string): Promise<void> {
  for (;;) {
    const { rowCount } = await leaderTransaction(pool, term, (db) =>
      db.query(
        `DELETE FROM punctual.keys WHERE (tenant, key) IN (
           SELECT k.tenant, k.key FROM punctual.${partition} h
           JOIN punctual.keys k ON k.tenant = h.tenant AND k.key = h.key AND k.job = h.id
           WHERE h.key IS NOT NULL LIMIT ${KEYS_PER_STEP})`,
      ),
    );
    if ((rowCount ?? 0) < KEYS_PER_STEP) return;
  }
}

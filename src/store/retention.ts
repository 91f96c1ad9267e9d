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

/** Removes days that lie before the moment, and the keys of their jobs; answers how many were removed. */
export async function removeOldDays(pool: Pool, term: TermKey, before: number): Promise<number> {
  let removed = 0;
  const old = await leaderTransaction(pool, term, (db) => partitionsBefore(db, before));
  for (const { table, name } of old) {
    try {
      await leaderTransaction(pool, term, async (db) => {
        await db.query(LOCK_TIMEOUT);
        if (table === 'job_history') {
          await db.query(
            `DELETE FROM punctual.keys k USING punctual.${name} h
             WHERE h.key IS NOT NULL AND k.tenant = h.tenant AND k.key = h.key AND k.job = h.id`,
          );
        }
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

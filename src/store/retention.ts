import { inTransaction, type Pool, type Queryable, sqlState } from './database.js';
import { leaderTransaction, type TermKey } from './leader-statement.js';
import { type DayTable, detachedBefore, keepPartitions, partitionsBefore } from './partitions.js';

/**
 * Old days leave as whole partitions, in three steps: detached, the keys of their jobs removed, dropped. Jobs never
 * outlive their keys that way, or the same key could be two jobs at once; and a key that outlives its job is free to
 * whoever submits it (see `registerKeys`). What a crash leaves between two steps is found by its name and finished by a
 * later pass.
 *
 * DETACH waits for readers, and everybody else would wait behind it, so it gives up after 50 ms and is tried again on
 * the next pass; so does DROP.
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
  for (const day of await partitionsBefore(pool, before)) await detach(pool, term, day);
  let removed = 0;
  for (const day of await detachedBefore(pool, before)) {
    if (day.table === 'job_history') await removeKeys(pool, term, day);
    if (await drop(pool, day)) removed += 1;
  }
  return removed;
}

function detach(pool: Pool, term: TermKey, { table, name }: DayTable): Promise<boolean> {
  return unlessLocked(
    leaderTransaction(pool, term, async (db) => {
      await db.query(LOCK_TIMEOUT);
      await db.query(`ALTER TABLE punctual.${table} DETACH PARTITION punctual.${name}`);
    }),
  );
}

/** Needs no fence: nobody reads or writes a detached table, and whoever drops it has seen its keys removed. */
function drop(pool: Pool, { name }: DayTable): Promise<boolean> {
  return unlessLocked(
    inTransaction(pool, async (db) => {
      await db.query(LOCK_TIMEOUT);
      await db.query(`DROP TABLE IF EXISTS punctual.${name}`);
    }),
  );
}

/** Answers whether it was done; false when somebody had a lock on what was to be changed. */
async function unlessLocked(work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    return false;
  }
}

/** Pages whose keys are removed in one transaction: a leader's transactions must be short. */
const PAGES_PER_STEP = 200;

/** Nothing in a detached table changes any more, so it is read page by page and each page once. */
async function removeKeys(pool: Pool, term: TermKey, { name }: DayTable): Promise<void> {
  const pages = await pagesOf(pool, name);
  for (let page = 0; page < pages; page += PAGES_PER_STEP) {
    await leaderTransaction(pool, term, (db) =>
      db.query(
        `DELETE FROM punctual.keys k USING punctual.${name} h
         WHERE h.ctid >= '(${page},0)'::tid AND h.ctid < '(${page + PAGES_PER_STEP},0)'::tid
           AND h.key IS NOT NULL AND k.tenant = h.tenant AND k.key = h.key AND k.job = h.id`,
      ),
    );
  }
}

async function pagesOf(db: Queryable, name: string): Promise<number> {
  const { rows } = await db.query(
    `SELECT pg_relation_size('punctual.${name}') / current_setting('block_size')::int AS pages`,
  );
  return rows[0].pages;
}

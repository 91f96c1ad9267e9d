import { inTransaction, isLockTaken, type Pool, type Queryable } from './database.js';
import type { TimeSpan } from './keep-history.js';
import { leaderTransaction, type TermKey } from './leader-statement.js';
import { type DayTable, detachedBefore, keepPartitions, partitionsBefore, spanOf } from './partitions.js';

/**
 * Old days are removed as whole partitions in four steps: move what has to stay (see `keep-history.ts`), detach, delete
 * the keys of the jobs, drop. In this order
 * no job outlives its key, which would allow two jobs with one key; a key that outlives its job goes to the next
 * submission that uses it (see `registerKeys`). After a crash between two steps, a later pass finds the table by its
 * name and goes on.
 *
 * While DETACH waits for readers, all others would wait behind it, so it gives up after 50 ms and is tried again on the
 * next pass; so is DROP.
 */
const LOCK_TIMEOUT = `SET LOCAL lock_timeout = '50ms'`;

/** Makes the partitions of the days ahead. */
export async function makePartitionsAhead(pool: Pool, term: TermKey, now: number): Promise<void> {
  await leaderTransaction(pool, term, async (db) => {
    await keepPartitions(db, now);
  });
}

/**
 * Removes days before the moment, and the keys of their jobs; answers how many tables were dropped. `keep` moves what has to stay of a day of history, before
 * that is detached. Days of history are detached in their order, so that none is missing among those that are there.
 */
export async function removeOldDays(
  pool: Pool,
  term: TermKey,
  before: number,
  keep: (day: TimeSpan) => Promise<void> = async () => undefined,
): Promise<number> {
  let isBlocked = false;
  for (const day of await partitionsBefore(pool, before)) {
    const isHistory = day.table === 'job_history';
    if (isHistory && isBlocked) continue;
    if (isHistory) await keep(spanOf(day));
    const isDetached = await detach(pool, term, day);
    if (isHistory) isBlocked = !isDetached;
  }
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

/** Needs no fence: nobody reads or writes a detached table, and it is dropped only after its keys were deleted. */
function drop(pool: Pool, { name }: DayTable): Promise<boolean> {
  return unlessLocked(
    inTransaction(pool, async (db) => {
      await db.query(LOCK_TIMEOUT);
      await db.query(`DROP TABLE IF EXISTS punctual.${name}`);
    }),
  );
}

/** Answers whether the work was done; false when another session held a lock on the table. */
async function unlessLocked(work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (!isLockTaken(error)) throw error;
    return false;
  }
}

/** Pages of a table whose keys are deleted in one transaction: a leader's transactions must be short. */
const PAGES_PER_STEP = 200;

/**
 * Reads a detached table page by page, each page once, because it no longer changes. Keys are locked in their order, as
 * by `registerKeys`.
 */
async function removeKeys(pool: Pool, term: TermKey, { name }: DayTable): Promise<void> {
  const pages = await pagesOf(pool, name);
  for (let page = 0; page < pages; page += PAGES_PER_STEP) {
    await leaderTransaction(pool, term, (db) =>
      db.query(
        `WITH theirs AS MATERIALIZED (
           SELECT k.tenant, k.key FROM punctual.${name} h
           JOIN punctual.keys k ON k.tenant = h.tenant AND k.key = h.key AND k.job = h.id
           WHERE h.ctid >= '(${page},0)'::tid AND h.ctid < '(${page + PAGES_PER_STEP},0)'::tid
           ORDER BY k.tenant, k.key FOR UPDATE OF k)
         DELETE FROM punctual.keys k USING theirs t WHERE k.tenant = t.tenant AND k.key = t.key`,
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

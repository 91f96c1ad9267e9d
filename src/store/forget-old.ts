import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Deletes what is kept for a time and no longer needed: minutes of statistics, which the totals include, and answers to
 * requests with an Idempotency-Key, and batches that are old, with the jobs that were kept for them. One statement for all,
 * because an idle leader asks for it every minute.
 */

/** Rows that one statement deletes: a leader's statements must be short, whatever the backlog. */
const MINUTES_PER_STEP = 5_000;
/** Fewer, because an answer may be stored in a hundred pieces. */
const ANSWERS_PER_STEP = 500;
/** Kept jobs of batches. A batch stays until the last of its jobs is gone. */
const JOBS_PER_STEP = 2_000;

const FORGET_OLD = leaderStatement(
  'forget-old',
  `minutes AS (
    DELETE FROM punctual.tally_minutes t WHERE t.ctid = ANY (ARRAY(
      SELECT s.ctid FROM punctual.tally_minutes s WHERE s.minute < $4::bigint AND ${WHILE_TERM_LASTS} LIMIT $6::int))
    RETURNING 1
  ), answers AS (
    DELETE FROM punctual.idempotency i WHERE i.created_at < $5::bigint AND i.ctid = ANY (ARRAY(
      SELECT s.ctid FROM punctual.idempotency s WHERE s.created_at < $5::bigint AND ${WHILE_TERM_LASTS} LIMIT $7::int))
    RETURNING 1
  ), old_batches AS MATERIALIZED (
    SELECT b.id FROM punctual.batches b WHERE b.ended_at < $8::bigint AND ${WHILE_TERM_LASTS} LIMIT $7::int
  ), jobs AS MATERIALIZED (
    SELECT k.tenant, k.id FROM punctual.job_history_kept k
    WHERE k.batch = ANY (ARRAY(SELECT id FROM old_batches)) LIMIT $9::int
  ), jobs_gone AS (
    DELETE FROM punctual.job_history_kept k USING jobs j WHERE k.tenant = j.tenant AND k.id = j.id
  ), batches AS (
    DELETE FROM punctual.batches b
    WHERE b.id = ANY (ARRAY(SELECT id FROM old_batches)) AND (SELECT count(*) FROM jobs) < $9::int
  ), answer AS (SELECT (SELECT count(*) FROM minutes) = $6::int OR (SELECT count(*) FROM answers) = $7::int
    OR (SELECT count(*) FROM old_batches) = $7::int OR (SELECT count(*) FROM jobs) = $9::int AS more)`,
);

/** The moments before which minutes, answers and ended batches are deleted. */
export interface OldBefore {
  readonly minutes: number;
  readonly answers: number;
  readonly batches?: number;
}

/** Deletes some of what is older than these moments; answers whether there may be more. */
export async function forgetOld(
  db: Queryable,
  term: TermKey,
  { minutes, answers, batches = 0 }: OldBefore,
): Promise<boolean> {
  const values = [minutes, answers, MINUTES_PER_STEP, ANSWERS_PER_STEP, batches, JOBS_PER_STEP];
  const [gone] = await runAsLeader<{ more: boolean }>(db, term, FORGET_OLD, values);
  return gone?.more ?? false;
}

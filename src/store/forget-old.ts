import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Deletes what is kept for a time and no longer needed: minutes of statistics, which the totals include, and answers to
 * requests with an Idempotency-Key, and batches whose jobs have left history. One statement for all, because an idle leader asks for it every minute.
 */

/** Rows that one statement deletes: a leader's statements must be short, whatever the backlog. */
const MINUTES_PER_STEP = 5_000;
/** Fewer, because an answer may be stored in a hundred pieces. */
const ANSWERS_PER_STEP = 500;

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
  ), batches AS (
    DELETE FROM punctual.batches b WHERE b.id = ANY (ARRAY(
      SELECT s.id FROM punctual.batches s WHERE s.ended_at < $8::bigint AND ${WHILE_TERM_LASTS} LIMIT $7::int))
    RETURNING 1
  ), answer AS (SELECT (SELECT count(*) FROM minutes) AS minutes, (SELECT count(*) FROM answers) AS answers,
    (SELECT count(*) FROM batches) AS batches)`,
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
  const values = [minutes, answers, MINUTES_PER_STEP, ANSWERS_PER_STEP, batches];
  type Gone = { minutes: number; answers: number; batches: number };
  const [gone] = await runAsLeader<Gone>(db, term, FORGET_OLD, values);
  const isFull = gone!.answers === ANSWERS_PER_STEP || gone!.batches === ANSWERS_PER_STEP;
  return gone!.minutes === MINUTES_PER_STEP || isFull;
}

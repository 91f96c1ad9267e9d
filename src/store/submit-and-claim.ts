import type { Queryable } from './database.js';
import { type JobRow, ROW_COLUMNS, rowArrays } from './job-row.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * A new job and its first claim in one transaction: one commit instead of two between a submission and its start.
 * Like every claim it is the leader's, and nothing is stored when the term is over.
 */

const SUBMIT_AND_CLAIM = leaderStatement(
  'submit-and-claim',
  `stored AS (
    INSERT INTO punctual.jobs (${ROW_COLUMNS})
    SELECT * FROM unnest(
      $4::uuid[], $5::text[], $6::int[], $7::int[], $8::smallint[], $9::bigint[], $10::smallint[], $11::smallint[],
      $12::boolean[], $13::bigint[], $14::bigint[], $15::bigint[], $16::text[], $17::text[], $18::text[],
      $19::text[], $20::json[], $21::json[], $22::json[], $23::json[], $24::int[])
    WHERE ${WHILE_TERM_LASTS}
    RETURNING id, tenant
  ), claimed AS (
    INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
    SELECT id, 1, $25::uuid, $2, $26::bigint FROM stored
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_submitted, jobs_assigned, lateness)
    SELECT $26::bigint, tenant, 1, 1, $27::bigint[] FROM stored
  ), answer AS (SELECT id FROM stored)`,
);

/** Stores a job that is due and claims it for the worker; throws TermOverError when this leader may not. */
export async function submitAndClaim(
  db: Queryable,
  term: TermKey,
  row: JobRow,
  worker: string,
  now: number,
  lateness: readonly number[],
): Promise<void> {
  await runAsLeader(db, term, SUBMIT_AND_CLAIM, [...rowArrays([row]), worker, now, lateness]);
}

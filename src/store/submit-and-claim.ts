import type { Queryable } from './database.js';
import { type JobRow, NEW_JOB_COLUMNS } from './job-row.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { namesHold, namesTaken, type Resolved } from './names.js';

/**
 * A new job and its first claim in one transaction: one commit instead of two between a submission and its start.
 * Like every claim it is the leader's, and nothing is stored when the term is over.
 */

const ROW = NEW_JOB_COLUMNS.inSql(12);

const SUBMIT_AND_CLAIM = leaderStatement(
  'submit-and-claim',
  `stored AS (
    INSERT INTO punctual.jobs (${NEW_JOB_COLUMNS.names}) SELECT ${ROW.all} FROM ${ROW.source}
    WHERE ${WHILE_TERM_LASTS} AND ${namesHold(7)}
    RETURNING id, tenant, run_at
  ), claimed AS (
    INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
    SELECT id, 1, $4::uuid, $2, $5::bigint FROM stored
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_submitted, jobs_assigned, lateness, lateness_ms)
    SELECT $5::bigint, tenant, 1, 1, $6::bigint[], greatest(0, $5::bigint - run_at) FROM stored
  ), answer AS (SELECT id FROM stored)`,
);

/**
 * Stores a job that is due and claims it for the worker; answers false, with nothing done, when the ids of its names
 * are no longer valid. Throws TermOverError when the term is over.
 */
export async function submitAndClaim(
  db: Queryable,
  term: TermKey,
  row: JobRow,
  names: Resolved,
  worker: string,
  now: number,
  lateness: readonly number[],
): Promise<boolean> {
  const before = [worker, now, lateness, ...namesTaken([names])];
  const stored = await runAsLeader(db, term, SUBMIT_AND_CLAIM, [
    ...before,
    ...NEW_JOB_COLUMNS.parameters([row]),
  ]);
  return stored.length > 0;
}

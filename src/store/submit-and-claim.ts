import type { Queryable } from './database.js';
import { type JobRow, NEW_JOB_COLUMNS } from './job-row.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { namesOfOne, namesOfOneHold, type Resolved } from './names.js';

/**
 * A new job and its first claim in one transaction: one commit instead of two between a submission and its start.
 * Like every claim it is the leader's, and nothing is stored when the term is over.
 */

const ROW = NEW_JOB_COLUMNS.oneInSql(12);

/** Stores the job under a condition, claims it and counts it. */
const storedAndClaimed = (condition: string) => `stored AS (
    INSERT INTO punctual.jobs (${NEW_JOB_COLUMNS.names}) SELECT ${ROW.all}
    WHERE ${condition} AND ${namesOfOneHold(7)}
    RETURNING id, tenant, run_at
  ), claimed AS (
    INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
    SELECT id, 1, $4::uuid, $2, $5::bigint FROM stored
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_submitted, jobs_assigned, lateness, lateness_ms)
    SELECT $5::bigint, tenant, 1, 1, $6::bigint[], greatest(0, $5::bigint - run_at) FROM stored
  ), answer AS (SELECT id FROM stored)`;

const SUBMIT_AND_CLAIM = leaderStatement('submit-and-claim', storedAndClaimed(WHILE_TERM_LASTS));

/**
 * The same for a tenant with a quota of jobs: only if there is room, which it takes. It does not wait for the tenant's row, which
 * a count or a large bulk may hold for long: a connection of the leader and the poll of a worker would wait along.
 */
const SUBMIT_AND_CLAIM_COUNTED = leaderStatement(
  'submit-and-claim-counted',
  `free AS MATERIALIZED (
    SELECT u.tenant FROM punctual.tenant_usage u
    WHERE u.tenant = ${ROW.of('tenant')} AND ${WHILE_TERM_LASTS} FOR UPDATE SKIP LOCKED
  ), room AS (
    UPDATE punctual.tenant_usage u SET live = u.live + 1 FROM punctual.tenants t
    WHERE u.tenant = (SELECT tenant FROM free) AND t.id = u.tenant
      AND (t.quota_live_jobs IS NULL OR u.live + 1 <= t.quota_live_jobs) AND ${WHILE_TERM_LASTS}
    RETURNING u.tenant
  ), ${storedAndClaimed('EXISTS (SELECT 1 FROM room)')}`,
);

/**
 * Stores a job that is due and claims it for the worker; answers false, with nothing done, when the ids of its names
 * are no longer valid, or a tenant whose jobs are counted has no room, or its row is locked. Throws TermOverError when the term is over.
 */
export async function submitAndClaim(
  db: Queryable,
  term: TermKey,
  row: JobRow,
  names: Resolved,
  worker: string,
  now: number,
  lateness: readonly number[],
  isCounted: boolean,
): Promise<boolean> {
  const stored = await runAsLeader(db, term, isCounted ? SUBMIT_AND_CLAIM_COUNTED : SUBMIT_AND_CLAIM, [
    ...[worker, now, lateness],
    ...namesOfOne(names),
    ...NEW_JOB_COLUMNS.valuesOf(row),
  ]);
  return stored.length > 0;
}

import type { AttemptOutcome, EndState } from '../core/job.js';
import { stands } from '../core/test-switches.js';
import { plainArray, textArray } from './array-text.js';
import { byIndex } from './by-index.js';
import { inClaimOrder } from './claim-order.js';
import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Jobs leave the live table: the fence is checked against the claim, the row moves to history, counts follow. */

/** An attempt is ended under the fence that is claimed; under any when tests have taken this fence out. */
const UNDER_ITS_FENCE = stands('claimed-fence') ? 'c.fence = u.fence' : 'u.fence > 0';

/** The columns that a job has in `jobs` and in `job_history` alike. */
export const SHARED_COLUMNS = `id, tenant, queue, needs, rank, run_at, attempts, failures, losses, max_attempts,
  max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
  target, backoff, requires, payload, earlier_attempts, lane, schedule, occurrence`;

const FINISH_JOBS = leaderStatement(
  'finish-jobs',
  `ended AS (
    DELETE FROM punctual.claims c
    USING unnest($4::uuid[], $5::int[], $6::text[], $7::text[], $8::json[], $9::json[], $10::bigint[])
      u(job, fence, state, outcome, result, error, started_at)
    WHERE ${byIndex('c.job', 'u.job')} AND ${UNDER_ITS_FENCE} AND ${WHILE_TERM_LASTS}
    RETURNING c.job, c.fence, c.worker, c.epoch, c.claimed_at, c.progress, u.state, u.outcome, u.result, u.error,
      u.started_at
  ), moved AS (
    DELETE FROM punctual.jobs j USING ended e WHERE ${byIndex('j.id', 'e.job')}
    RETURNING j.id, j.tenant, j.queue, j.needs, j.rank, j.run_at, e.fence AS attempts,
      j.failures + (e.outcome IN ('failed', 'timed-out'))::int AS failures,
      j.losses + (e.outcome = 'lost')::int AS losses,
      j.max_attempts, j.max_losses, j.at_most_once, j.timeout_ms, j.created_at, j.start_before,
      coalesce(j.late_by, greatest(0, coalesce(e.started_at, e.claimed_at) - j.run_at)) AS late_by,
      j.task, j.created_by, j.key, j.concurrency_key, j.target, j.backoff, j.requires, j.payload,
      j.earlier_attempts, j.lane, j.schedule, j.occurrence, e.state, e.fence, e.worker, e.epoch, e.claimed_at,
      e.started_at, e.outcome, e.result, e.error, e.progress
  ), kept AS (
    INSERT INTO punctual.job_history (${SHARED_COLUMNS}, state, finished_at, fence, worker, epoch, claimed_at,
      started_at, outcome, result, error, progress)
    SELECT ${SHARED_COLUMNS}, state, $11::bigint, fence, worker, epoch, claimed_at, started_at, outcome, result,
      error, progress
    FROM moved
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled)
    SELECT $11::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
      count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled')
    FROM moved GROUP BY tenant
  ), answer AS (SELECT id FROM moved)`,
);

const RETRY_JOBS = leaderStatement(
  'retry-jobs',
  `freed AS (
    DELETE FROM punctual.claims c
    USING unnest($4::uuid[], $5::int[], $6::text[], $7::bigint[], $8::bigint[], $9::json[])
      u(job, fence, outcome, run_at, late_by, attempt)
    WHERE ${byIndex('c.job', 'u.job')} AND ${UNDER_ITS_FENCE} AND ${WHILE_TERM_LASTS}
    RETURNING c.job, c.fence, u.outcome, u.run_at, u.late_by, u.attempt
  ), again AS (
    UPDATE punctual.jobs j SET
      attempts = f.fence,
      failures = j.failures + (f.outcome IN ('failed', 'timed-out'))::int,
      losses = j.losses + (f.outcome = 'lost')::int,
      run_at = f.run_at,
      late_by = coalesce(j.late_by, f.late_by),
      earlier_attempts = array_append(j.earlier_attempts, f.attempt)
    FROM freed f WHERE ${byIndex('j.id', 'f.job')}
    RETURNING j.id, j.tenant, f.outcome
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_retried, jobs_requeued)
    SELECT $10::bigint, tenant, count(*) FILTER (WHERE outcome <> 'lost'), count(*) FILTER (WHERE outcome = 'lost')
    FROM again GROUP BY tenant
  ), answer AS (SELECT id FROM again)`,
);

/** The end of a job by its running attempt. JSON fields are texts. */
export interface Ending {
  readonly id: string;
  readonly fence: number;
  readonly state: EndState;
  readonly outcome: AttemptOutcome;
  readonly result: string | null;
  readonly error: string | null;
  readonly startedAt: number | null;
}

/** Another attempt after this one. */
export interface Retrying {
  readonly id: string;
  readonly fence: number;
  readonly outcome: AttemptOutcome;
  readonly runAt: number;
  readonly lateBy: number;
  /** The ended attempt as JSON, appended to the job's earlier attempts. */
  readonly attempt: string;
}

/** Ends the jobs whose (job, fence) is claimed; answers with their ids. */
export async function finishJobs(
  db: Queryable,
  term: TermKey,
  endings: readonly Ending[],
  now: number,
): Promise<string[]> {
  const ordered = inClaimOrder(endings);
  const rows = await runAsLeader<{ id: string }>(db, term, FINISH_JOBS, [
    plainArray(ordered.map((ending) => ending.id)),
    plainArray(ordered.map((ending) => ending.fence)),
    plainArray(ordered.map((ending) => ending.state)),
    plainArray(ordered.map((ending) => ending.outcome)),
    textArray(ordered.map((ending) => ending.result)),
    textArray(ordered.map((ending) => ending.error)),
    plainArray(ordered.map((ending) => ending.startedAt)),
    now,
  ]);
  return rows.map((row) => row.id);
}

/** Frees the claims and lets the jobs wait for their next attempt; answers with their ids. */
export async function retryJobs(
  db: Queryable,
  term: TermKey,
  retries: readonly Retrying[],
  now: number,
): Promise<string[]> {
  const ordered = inClaimOrder(retries);
  const rows = await runAsLeader<{ id: string }>(db, term, RETRY_JOBS, [
    ordered.map((retry) => retry.id),
    ordered.map((retry) => retry.fence),
    ordered.map((retry) => retry.outcome),
    ordered.map((retry) => retry.runAt),
    ordered.map((retry) => retry.lateBy),
    ordered.map((retry) => retry.attempt),
    now,
  ]);
  return rows.map((row) => row.id);
}

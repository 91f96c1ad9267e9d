import type { AttemptOutcome, EndState } from '../core/job.js';
import { stands } from '../core/test-switches.js';
import { byIndex } from './by-index.js';
import { inClaimOrder } from './claim-order.js';
import { Columns, type ColumnsInSql } from './columns.js';
import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { type Changed, changedRows, refusedOf } from './refused.js';

/** Jobs leave the live table: the fence is checked against the claim, the row moves to history, counts follow. */

/** An attempt is ended under the fence that is claimed; under any when tests have taken this fence out. */
function underItsFence(attempts: ColumnsInSql): string {
  return stands('claimed-fence') ? `c.fence = ${attempts.of('fence')}` : `${attempts.of('fence')} > 0`;
}

/** The columns that a job has in `jobs` and in `job_history` alike. */
export const SHARED_COLUMNS = `id, tenant, queue, needs, rank, run_at, attempts, failures, losses, max_attempts,
  max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
  target, backoff, requires, payload, earlier_attempts, lane, schedule, occurrence`;

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

const ENDING_COLUMNS = new Columns<Ending>([
  { name: 'id', type: 'uuid', of: (ending) => ending.id },
  { name: 'fence', type: 'int', of: (ending) => ending.fence },
  { name: 'state', type: 'text', of: (ending) => ending.state },
  { name: 'outcome', type: 'text', of: (ending) => ending.outcome },
  { name: 'result', type: 'json', of: (ending) => ending.result },
  { name: 'error', type: 'json', of: (ending) => ending.error },
  { name: 'started_at', type: 'bigint', of: (ending) => ending.startedAt },
]);
const ENDINGS = ENDING_COLUMNS.inSql(5);

const FINISH_JOBS = leaderStatement(
  'finish-jobs',
  `ended AS (
    DELETE FROM punctual.claims c
    USING ${ENDINGS.source}
    WHERE ${byIndex('c.job', 'u.id')} AND ${underItsFence(ENDINGS)} AND ${WHILE_TERM_LASTS}
    RETURNING c.job, c.fence, c.worker, c.epoch, c.claimed_at, c.progress, ${ENDINGS.of('state')} AS state,
      ${ENDINGS.of('outcome')} AS outcome, ${ENDINGS.of('result')} AS result, ${ENDINGS.of('error')} AS error,
      ${ENDINGS.of('started_at')} AS started_at
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
    SELECT ${SHARED_COLUMNS}, state, $4::bigint, fence, worker, epoch, claimed_at, started_at, outcome, result,
      error, progress
    FROM moved
    RETURNING id, tenant, state
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled)
    SELECT $4::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
      count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled')
    FROM kept GROUP BY tenant
  ), answer AS (${changedRows('kept', 'id', 'cardinality($5::uuid[])')})`,
);

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

const RETRY_COLUMNS = new Columns<Retrying>([
  { name: 'id', type: 'uuid', of: (retry) => retry.id },
  { name: 'fence', type: 'int', of: (retry) => retry.fence },
  { name: 'outcome', type: 'text', of: (retry) => retry.outcome },
  { name: 'run_at', type: 'bigint', of: (retry) => retry.runAt },
  { name: 'late_by', type: 'bigint', of: (retry) => retry.lateBy },
  { name: 'attempt', type: 'json', of: (retry) => retry.attempt },
]);
const RETRIES = RETRY_COLUMNS.inSql(5);

const RETRY_JOBS = leaderStatement(
  'retry-jobs',
  `freed AS (
    DELETE FROM punctual.claims c
    USING ${RETRIES.source}
    WHERE ${byIndex('c.job', 'u.id')} AND ${underItsFence(RETRIES)} AND ${WHILE_TERM_LASTS}
    RETURNING c.job, c.fence, ${RETRIES.of('outcome')} AS outcome, ${RETRIES.of('run_at')} AS run_at,
      ${RETRIES.of('late_by')} AS late_by, ${RETRIES.of('attempt')} AS attempt
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
    SELECT $4::bigint, tenant, count(*) FILTER (WHERE outcome <> 'lost'), count(*) FILTER (WHERE outcome = 'lost')
    FROM again GROUP BY tenant
  ), answer AS (${changedRows('again', 'id', 'cardinality($5::uuid[])')})`,
);

/** Ends the jobs whose (job, fence) is claimed; answers with those that are not. */
export async function finishJobs(
  db: Queryable,
  term: TermKey,
  endings: readonly Ending[],
  now: number,
): Promise<ReadonlySet<string>> {
  const values = [now, ...ENDING_COLUMNS.parameters(inClaimOrder(endings))];
  const [answer] = await runAsLeader<Changed>(db, term, FINISH_JOBS, values);
  return refusedOf(endings, answer);
}

/** Frees the claims and lets the jobs wait for their next attempt; answers with those that were not claimed. */
export async function retryJobs(
  db: Queryable,
  term: TermKey,
  retries: readonly Retrying[],
  now: number,
): Promise<ReadonlySet<string>> {
  const values = [now, ...RETRY_COLUMNS.parameters(inClaimOrder(retries))];
  const [answer] = await runAsLeader<Changed>(db, term, RETRY_JOBS, values);
  return refusedOf(retries, answer);
}

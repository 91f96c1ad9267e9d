import { ATTEMPT_OUTCOMES, type AttemptOutcome, END_STATES, type EndState } from '../core/job.js';
import { stands } from '../host/test-switches.js';
import { byIndex } from './by-index.js';
import { inClaimOrder } from './claim-order.js';
import { Columns } from './columns.js';
import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { PlacedColumns } from './placed-columns.js';
import { type Changed, changedRows, refusedOf } from './refused.js';

/** Jobs leave the live table: the fence is checked against the claim, the row moves to history, counts follow. */

/** An attempt is ended under the fence that is claimed; under any when tests have taken this fence out. */
function underItsFence(fence: string): string {
  return stands('claimed-fence') ? `c.fence = ${fence}` : `${fence} > 0`;
}

/** The columns that a job has in `jobs` and in `job_history` alike. */
export const SHARED_COLUMNS = `id, tenant, queue, needs, rank, run_at, attempts, failures, losses, max_attempts,
  max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key, concurrency_key,
  target, backoff, requires, payload, earlier_attempts, lane, schedule, occurrence`;

/** Columns of a job that may be long. */
const LONG_COLUMNS = ['payload', 'earlier_attempts', 'target', 'requires'];

/** About as many bytes as are moved with a row; they are read off what points to its values, which stay untouched. */
export function rowBytes(row: string): string {
  return `(256 + ${LONG_COLUMNS.map((column) => `coalesce(pg_column_size(${row}.${column}), 0)`).join(' + ')})`;
}

/** The end of a job by its running attempt. JSON fields are texts. */
export interface Ending {
  readonly id: string;
  readonly fence: number;
  readonly worker: string;
  readonly epoch: number;
  readonly claimedAt: number;
  readonly startedAt: number | null;
  readonly state: EndState;
  readonly outcome: AttemptOutcome;
  readonly result: string | null;
  readonly error: string | null;
  readonly progress: string | null;
}

export const ENDING_COLUMNS = new PlacedColumns<Ending>([
  { name: 'fence', type: 'int', of: (ending) => ending.fence },
  { name: 'worker', type: 'uuid', of: (ending) => ending.worker },
  { name: 'epoch', type: 'bigint', of: (ending) => ending.epoch },
  { name: 'claimed_at', type: 'bigint', of: (ending) => ending.claimedAt },
  { name: 'started_at', type: 'bigint', of: (ending) => ending.startedAt },
  { name: 'state', type: 'smallint', of: (ending) => END_STATES.indexOf(ending.state) + 1 },
  { name: 'outcome', type: 'smallint', of: (ending) => ATTEMPT_OUTCOMES.indexOf(ending.outcome) + 1 },
  { name: 'result', type: 'json', of: (ending) => ending.result },
  { name: 'error', type: 'json', of: (ending) => ending.error },
  { name: 'progress', type: 'json', of: (ending) => ending.progress },
]);
const ENDINGS = ENDING_COLUMNS.inSql(5);

/** Words go as their numbers in a list. */
const word = (words: readonly string[], number: string) => `('{${words.join(',')}}'::text[])[${number}]`;
const of = (name: string) => ENDINGS.of(name, 'm.id');
const STATE = word(END_STATES, of('state'));
const OUTCOME = word(ATTEMPT_OUTCOMES, of('outcome'));

const FINISH_JOBS = leaderStatement(
  'finish-jobs',
  `freed AS (
    DELETE FROM punctual.claims c
    WHERE c.job = ANY(${ENDINGS.ids}) AND ${underItsFence(ENDINGS.of('fence', 'c.job'))} AND ${WHILE_TERM_LASTS}
    RETURNING c.job
  ), moved AS (
    DELETE FROM punctual.jobs j WHERE j.id = ANY(ARRAY(SELECT job FROM freed))
    RETURNING j.*
  ), kept AS (
    INSERT INTO punctual.job_history (${SHARED_COLUMNS}, state, finished_at, fence, worker, epoch, claimed_at,
      started_at, outcome, result, error, progress)
    SELECT m.id, m.tenant, m.queue, m.needs, m.rank, m.run_at, ${of('fence')},
      m.failures + (${OUTCOME} IN ('failed', 'timed-out'))::int, m.losses + (${OUTCOME} = 'lost')::int,
      m.max_attempts, m.max_losses, m.at_most_once, m.timeout_ms, m.created_at, m.start_before,
      coalesce(m.late_by, greatest(0, coalesce(${of('started_at')}, ${of('claimed_at')}) - m.run_at)),
      m.task, m.created_by, m.key, m.concurrency_key, m.target, m.backoff, m.requires, m.payload,
      m.earlier_attempts, m.lane, m.schedule, m.occurrence, ${STATE}, $4::bigint, ${of('fence')}, ${of('worker')},
      ${of('epoch')}, ${of('claimed_at')}, ${of('started_at')}, ${OUTCOME}, ${of('result')}, ${of('error')},
      ${of('progress')}
    FROM moved m
    RETURNING id, tenant, state
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled)
    SELECT $4::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'),
      count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled')
    FROM kept GROUP BY tenant
  ), answer AS (${changedRows('kept', 'id', `cardinality(${ENDINGS.ids})`)})`,
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
    WHERE ${byIndex('c.job', 'u.id')} AND ${underItsFence(RETRIES.of('fence'))} AND ${WHILE_TERM_LASTS}
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
  const values = [now, ...ENDING_COLUMNS.parameters(endings)];
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

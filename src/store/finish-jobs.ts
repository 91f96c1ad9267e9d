import { ATTEMPT_OUTCOMES, type AttemptOutcome, END_STATES, type EndState } from '../core/job.js';
import { stands } from '../host/test-switches.js';
import { byIndex, type Changed, changedRows, inClaimOrder, refusedOf } from './batch-statement.js';
import { Columns } from './columns.js';
import type { Queryable } from './database.js';
import { endParts } from './ended-jobs.js';
import { column } from './job-columns.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { SortedColumns } from './sorted-columns.js';

/** Ends of attempts: the fence is checked against the claim, and the job ends or waits for its next attempt. */

/** The condition that the fence is the claimed one; any fence when tests have removed this check. */
function underItsFence(fence: string): string {
  return stands('claimed-fence') ? `c.fence = ${fence}` : `${fence} > 0`;
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
  readonly execution: string | null;
}

/** The columns of endings; exported for the test that runs every leader statement. */
export const ENDING_COLUMNS = new SortedColumns<Ending>([
  column('fence', (ending) => ending.fence),
  column('worker', (ending) => ending.worker),
  column('epoch', (ending) => ending.epoch),
  column('claimed_at', (ending) => ending.claimedAt),
  column('started_at', (ending) => ending.startedAt),
  { name: 'state', type: 'smallint', of: (ending) => END_STATES.indexOf(ending.state) + 1 },
  { name: 'outcome', type: 'smallint', of: (ending) => ATTEMPT_OUTCOMES.indexOf(ending.outcome) + 1 },
  column('result', (ending) => ending.result),
  column('error', (ending) => ending.error),
  column('progress', (ending) => ending.progress),
  column('execution', (ending) => ending.execution),
]);
const ENDINGS = ENDING_COLUMNS.inSql(5);

/** Words are sent as their numbers in a list, which have a fixed length. */
const word = (words: readonly string[], number: string) => `('{${words.join(',')}}'::text[])[${number}]`;
const of = (name: string) => ENDINGS.at(name, 'm.place');
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
    RETURNING j.*, ${ENDINGS.placeOf('j.id')} AS place
  ), ${endParts({
    from: 'jobs',
    rows: 'moved',
    at: '$4::bigint',
    state: STATE,
    set: {
      attempts: of('fence'),
      failures: `m.failures + (${OUTCOME} IN ('failed', 'timed-out'))::int`,
      losses: `m.losses + (${OUTCOME} = 'lost')::int`,
      late_by: `coalesce(m.late_by, greatest(0, coalesce(${of('started_at')}, ${of('claimed_at')}) - m.run_at))`,
      fence: of('fence'),
      worker: of('worker'),
      epoch: of('epoch'),
      claimed_at: of('claimed_at'),
      started_at: of('started_at'),
      outcome: OUTCOME,
      result: of('result'),
      error: of('error'),
      progress: of('progress'),
      execution: of('execution'),
    },
  })}, answer AS (${changedRows('ended', 'id', `cardinality(${ENDINGS.ids})`)})`,
);

/** The end of an attempt after which the job waits for the next one. */
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
  column('id', (retry) => retry.id),
  column('fence', (retry) => retry.fence),
  column('outcome', (retry) => retry.outcome),
  column('run_at', (retry) => retry.runAt),
  column('late_by', (retry) => retry.lateBy),
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

/** Ends the jobs whose (job, fence) is claimed; answers with those that were not. */
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

/** Deletes the claims and lets the jobs wait for their next attempt; answers with those that were not claimed. */
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

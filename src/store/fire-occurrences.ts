import { byIndex } from './batch-statement.js';
import { Columns } from './columns.js';
import { type Queryable, run, type Statement, statement } from './database.js';
import { column, insertedColumns } from './job-columns.js';
import { awaitsArtifact, type JobRow, NEW_JOB_COLUMNS, NEW_LATER_COLUMNS } from './job-row.js';
import { COUNTED, countByTenant } from './submit-jobs.js';

/**
 * What firing writes: watermarks of schedules, their occurrences, and the jobs of these, all in one transaction that
 * begins with the fence. The ledger's unique key holds across leaders: a job is made only for an occurrence that this
 * transaction recorded.
 */

/** The move of a schedule's watermark. */
export interface Move {
  readonly id: string;
  readonly version: number;
  /** The watermark that was read; if it has changed since, the schedule is left as it is. */
  readonly from: number;
  readonly watermark: number;
  readonly fireAt: number | null;
  /** The newest run; null keeps the current one. */
  readonly lastRun: StoredRun | null;
}

/** The run of an occurrence: a job, or a workflow or batch and the first of its jobs. */
export interface StoredRun {
  readonly job: string;
  readonly workflow: string | null;
  readonly batch: string | null;
}

/** The state of an occurrence in the ledger. */
export type StoredState = 'ran' | 'late' | 'waiting' | 'skipped' | 'missed';

/** A row of the ledger as it is written. */
export interface OccurrenceRow {
  readonly schedule: string;
  readonly at: number;
  readonly byHand: boolean;
  readonly tenant: string;
  readonly state: StoredState;
  readonly reason: string | null;
  readonly job: string | null;
  readonly workflow: string | null;
  readonly batch: string | null;
  /** The delay in milliseconds beyond which a start is late. */
  readonly lateAfter: number | null;
  /** The last occurrence of a row for several that were passed over. */
  readonly until: number | null;
  readonly count: number;
  readonly judgeAt: number | null;
}

/** A job of a schedule; a run by hand has no occurrence. */
export interface ScheduledJob {
  readonly row: JobRow;
  /** The name of the schedule. */
  readonly schedule: string;
  readonly occurrence: number | null;
}

const MOVE_SCHEDULES = statement(
  'move-schedules',
  `
    UPDATE punctual.schedules s SET
      watermark = u.watermark, fire_at = u.fire_at, last_job = coalesce(u.last_job, s.last_job),
      last_workflow = CASE WHEN u.last_job IS NULL THEN s.last_workflow ELSE u.last_workflow END,
      last_batch = CASE WHEN u.last_job IS NULL THEN s.last_batch ELSE u.last_batch END
    FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::uuid[], $7::uuid[], $8::uuid[])
      u(id, version, moved_from, watermark, fire_at, last_job, last_workflow, last_batch)
    WHERE ${byIndex('s.id', 'u.id')} AND s.version = u.version AND s.watermark = u.moved_from
    RETURNING s.id`,
);

const RECORD_OCCURRENCES = statement(
  'record-occurrences',
  `
    WITH recorded AS (
      INSERT INTO punctual.occurrences (schedule, at, by_hand, tenant, state, reason, job, late_after, until, count,
        judge_at, workflow, batch, recorded_at)
      SELECT u.*, $12::bigint FROM unnest($1::uuid[], $2::bigint[], $3::boolean[], $4::text[], $5::text[], $6::text[],
        $7::uuid[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $13::uuid[], $14::uuid[])
        u(schedule, at, by_hand, tenant, state, reason, job, late_after, until, count, judge_at, workflow, batch)
      ON CONFLICT (schedule, at, by_hand) DO NOTHING
      RETURNING job, tenant, state, count
    ), counted AS (
      INSERT INTO punctual.tallies (at, tenant, occurrences_missed)
      SELECT $12::bigint, tenant, sum(count) FROM recorded WHERE state = 'missed' GROUP BY tenant
    )
    SELECT job FROM recorded WHERE job IS NOT NULL`,
);

const SCHEDULED_COLUMNS = new Columns<ScheduledJob>([
  ...NEW_JOB_COLUMNS.inside((job: ScheduledJob) => job.row),
  ...insertedColumns('scheduled').map((name) => column(name, (job: ScheduledJob) => job[name])),
]);
const SCHEDULED = SCHEDULED_COLUMNS.inSql(4);

const INSERT_SCHEDULED_JOBS = statement(
  'insert-scheduled-jobs',
  `
    WITH ${COUNTED}
    INSERT INTO punctual.jobs (${SCHEDULED_COLUMNS.names}) SELECT ${SCHEDULED.all} FROM ${SCHEDULED.source}`,
);

/** A job of an occurrence whose artifact has not arrived; it is not admitted, but an admission time there must be. */
const WAITING_COLUMNS = new Columns<ScheduledJob>([
  ...NEW_LATER_COLUMNS.inside((job: ScheduledJob) => job.row),
  ...insertedColumns('scheduled').map((name) => column(name, (job: ScheduledJob) => job[name])),
  column('admit_at', (job: ScheduledJob) => job.row.definition.run_at),
]);
const WAITING = WAITING_COLUMNS.inSql(4);

const INSERT_WAITING_JOBS = statement(
  'insert-waiting-scheduled-jobs',
  `
    WITH ${COUNTED}
    INSERT INTO punctual.later (${WAITING_COLUMNS.names}, blocked)
    SELECT ${WAITING.all}, true FROM ${WAITING.source}`,
);

/** An occurrence that waited for the job before it gets its own. */
const START_WAITING = statement(
  'start-waiting-occurrence',
  `
    UPDATE punctual.occurrences o SET state = 'ran', reason = NULL, job = $3::uuid, judge_at = $4::bigint,
      workflow = $5::uuid, batch = $6::uuid
    WHERE o.schedule = $1::uuid AND o.at = $2::bigint AND NOT o.by_hand AND o.state = 'waiting'
    RETURNING o.at`,
);

const SET_LAST_RUN = statement(
  'set-last-run',
  `
    UPDATE punctual.schedules SET last_job = $2::uuid, last_workflow = $3::uuid, last_batch = $4::uuid
    WHERE id = $1::uuid`,
);

/** An occurrence that waited gets no run, because none can be made. */
const REFUSE_WAITING = statement(
  'refuse-waiting-occurrence',
  `
    WITH refused AS (
      UPDATE punctual.occurrences o SET state = 'missed', reason = $3::text
      WHERE o.schedule = $1::uuid AND o.at = $2::bigint AND NOT o.by_hand AND o.state = 'waiting'
      RETURNING o.tenant
    )
    INSERT INTO punctual.tallies (at, tenant, occurrences_missed) SELECT $4::bigint, tenant, 1 FROM refused`,
);

/** Moves watermarks; answers with the ids of the schedules that had not changed since they were read. */
export async function moveSchedules(db: Queryable, moves: readonly Move[]): Promise<Set<string>> {
  // In order of id, so that no two transactions can deadlock.
  const ordered = [...moves].sort((a, b) => (a.id < b.id ? -1 : 1));
  const rows = await run<{ id: string }>(db, MOVE_SCHEDULES, [
    ordered.map((move) => move.id),
    ordered.map((move) => move.version),
    ordered.map((move) => move.from),
    ordered.map((move) => move.watermark),
    ordered.map((move) => move.fireAt),
    ordered.map(({ lastRun }) => lastRun?.job ?? null),
    ordered.map(({ lastRun }) => lastRun?.workflow ?? null),
    ordered.map(({ lastRun }) => lastRun?.batch ?? null),
  ]);
  return new Set(rows.map((row) => row.id));
}

/** Records occurrences that are not in the ledger yet; answers with the jobs of those that it recorded. */
export async function recordOccurrences(
  db: Queryable,
  rows: readonly OccurrenceRow[],
  now: number,
): Promise<Set<string>> {
  if (rows.length === 0) return new Set();
  const recorded = await run<{ job: string }>(db, RECORD_OCCURRENCES, [
    rows.map((row) => row.schedule),
    rows.map((row) => row.at),
    rows.map((row) => row.byHand),
    rows.map((row) => row.tenant),
    rows.map((row) => row.state),
    rows.map((row) => row.reason),
    rows.map((row) => row.job),
    rows.map((row) => row.lateAfter),
    rows.map((row) => row.until),
    rows.map((row) => row.count),
    rows.map((row) => row.judgeAt),
    now,
    rows.map((row) => row.workflow),
    rows.map((row) => row.batch),
  ]);
  return new Set(recorded.map((row) => row.job));
}

/** Stores the jobs of occurrences: in the live table, but for those that wait for an artifact. */
export async function insertScheduledJobs(
  db: Queryable,
  jobs: readonly ScheduledJob[],
  now: number,
): Promise<void> {
  const insert = async (
    statement: Statement,
    columns: Columns<ScheduledJob>,
    some: readonly ScheduledJob[],
  ) => {
    if (some.length === 0) return;
    const counts = countByTenant(some.map((job) => job.row));
    await run(db, statement, [now, ...counts, ...columns.parameters(some)]);
  };
  await insert(
    INSERT_SCHEDULED_JOBS,
    SCHEDULED_COLUMNS,
    jobs.filter(({ row }) => !awaitsArtifact(row)),
  );
  await insert(
    INSERT_WAITING_JOBS,
    WAITING_COLUMNS,
    jobs.filter(({ row }) => awaitsArtifact(row)),
  );
}

/** Gives a waiting occurrence its run; answers false when it no longer waits. */
export async function startWaiting(
  db: Queryable,
  { schedule, at }: { schedule: string; at: number },
  { job, workflow, batch }: StoredRun,
  judgeAt: number | null,
): Promise<boolean> {
  const rows = await run(db, START_WAITING, [schedule, at, job, judgeAt, workflow, batch]);
  if (rows.length === 0) return false;
  await run(db, SET_LAST_RUN, [schedule, job, workflow, batch]);
  return true;
}

/** Records that an occurrence that waited gets no run, and why. */
export async function refuseWaiting(
  db: Queryable,
  { schedule, at }: { schedule: string; at: number },
  reason: string,
  now: number,
): Promise<void> {
  await run(db, REFUSE_WAITING, [schedule, at, reason, now]);
}

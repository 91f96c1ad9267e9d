import { byIndex } from './batch-statement.js';
import { Columns } from './columns.js';
import { type Queryable, run, statement } from './database.js';
import { column, insertedColumns } from './job-columns.js';
import { type JobRow, NEW_JOB_COLUMNS } from './job-row.js';
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
  /** The newest job; null keeps the current one. */
  readonly lastJob: string | null;
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
      watermark = u.watermark, fire_at = u.fire_at, last_job = coalesce(u.last_job, s.last_job)
    FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::uuid[])
      u(id, version, moved_from, watermark, fire_at, last_job)
    WHERE ${byIndex('s.id', 'u.id')} AND s.version = u.version AND s.watermark = u.moved_from
    RETURNING s.id`,
);

const RECORD_OCCURRENCES = statement(
  'record-occurrences',
  `
    WITH recorded AS (
      INSERT INTO punctual.occurrences (schedule, at, by_hand, tenant, state, reason, job, late_after, until, count,
        judge_at, recorded_at)
      SELECT u.*, $12::bigint FROM unnest($1::uuid[], $2::bigint[], $3::boolean[], $4::text[], $5::text[], $6::text[],
        $7::uuid[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
        u(schedule, at, by_hand, tenant, state, reason, job, late_after, until, count, judge_at)
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

/** An occurrence that waited for the job before it gets its own. */
const START_WAITING = statement(
  'start-waiting-occurrence',
  `
    UPDATE punctual.occurrences o SET state = 'ran', reason = NULL, job = $3::uuid, judge_at = $4::bigint
    WHERE o.schedule = $1::uuid AND o.at = $2::bigint AND NOT o.by_hand AND o.state = 'waiting'
    RETURNING o.at`,
);

const SET_LAST_JOB = statement(
  'set-last-job',
  'UPDATE punctual.schedules SET last_job = $2::uuid WHERE id = $1::uuid',
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
    ordered.map((move) => move.lastJob),
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
  ]);
  return new Set(recorded.map((row) => row.job));
}

/** Stores the jobs of occurrences in the live table. */
export async function insertScheduledJobs(
  db: Queryable,
  jobs: readonly ScheduledJob[],
  now: number,
): Promise<void> {
  if (jobs.length === 0) return;
  const counts = countByTenant(jobs.map((job) => job.row));
  await run(db, INSERT_SCHEDULED_JOBS, [now, ...counts, ...SCHEDULED_COLUMNS.parameters(jobs)]);
}

/** Gives a waiting occurrence its job; answers false when it no longer waits. */
export async function startWaiting(
  db: Queryable,
  occurrence: { schedule: string; at: number },
  job: string,
  judgeAt: number,
): Promise<boolean> {
  const rows = await run(db, START_WAITING, [occurrence.schedule, occurrence.at, job, judgeAt]);
  if (rows.length === 0) return false;
  await run(db, SET_LAST_JOB, [occurrence.schedule, job]);
  return true;
}

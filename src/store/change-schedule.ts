import { NOT_CLAIMED } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';

/** Changes that people make to a schedule; each runs in a transaction that begins with the fence. */

const UPDATE_SCHEDULE = statement(
  'update-schedule',
  `
    UPDATE punctual.schedules s SET
      definition = $3::json, paused = $4, watermark = $5::bigint, fire_at = $6::bigint, changed_at = $7::bigint,
      changed_by = $8, version = s.version + 1
    WHERE s.id = $1::uuid AND s.version = $2 AND s.deleted_at IS NULL
    RETURNING s.id`,
);

const DELETE_SCHEDULE = statement(
  'delete-schedule',
  `
    UPDATE punctual.schedules s SET fire_at = NULL, changed_at = $3::bigint, changed_by = $4, deleted_at = $3::bigint,
      version = s.version + 1
    WHERE s.id = $1::uuid AND s.version = $2 AND s.deleted_at IS NULL
    RETURNING s.id`,
);

/** Occurrences after the moment whose jobs were made ahead of time. */
const READ_AHEAD = statement(
  'read-ahead',
  `
    SELECT o.at, o.job, o.workflow IS NULL AND o.batch IS NULL AS "isJob" FROM punctual.occurrences o
    WHERE o.schedule = $1::uuid AND o.at > $2 AND NOT o.by_hand AND o.job IS NOT NULL ORDER BY o.at`,
);

/** Which of the jobs still wait; the others have started or ended. */
const READ_WAITING_AHEAD = statement(
  'read-waiting-ahead',
  `
    SELECT u.id FROM unnest($1::uuid[]) u(id) WHERE coalesce(
      (SELECT true FROM punctual.jobs j WHERE j.id = u.id AND ${NOT_CLAIMED}),
      (SELECT true FROM punctual.later l WHERE l.id = u.id), false)`,
);

const FORGET_AHEAD = statement(
  'forget-ahead',
  `
    DELETE FROM punctual.occurrences o USING unnest($2::bigint[]) u(at)
    WHERE o.schedule = $1::uuid AND o.at = u.at AND NOT o.by_hand`,
);

const SKIP_OCCURRENCES = statement(
  'skip-occurrences',
  `
    UPDATE punctual.occurrences o SET state = 'skipped', reason = $3, job = NULL, judge_at = NULL
    FROM unnest($2::bigint[]) u(at)
    WHERE o.schedule = $1::uuid AND o.at = u.at AND NOT o.by_hand`,
);

const SKIP_WAITING = statement(
  'skip-waiting',
  `
    UPDATE punctual.occurrences o SET state = 'skipped', reason = $2
    WHERE o.schedule = $1::uuid AND o.state = 'waiting'`,
);

/** The new state of a schedule. */
export interface ScheduleUpdate {
  readonly definition: string;
  readonly paused: boolean;
  readonly watermark: number;
  readonly fireAt: number | null;
}

/** Replaces the version of a schedule that was read; answers false when it has changed since. */
export async function updateSchedule(
  db: Queryable,
  { id, version }: { id: string; version: number },
  update: ScheduleUpdate,
  by: string,
  now: number,
): Promise<boolean> {
  const { definition, paused, watermark, fireAt } = update;
  const values = [id, version, definition, paused, watermark, fireAt, now, by];
  return (await run(db, UPDATE_SCHEDULE, values)).length > 0;
}

/** Ends a schedule; its ledger stays. */
export async function deleteSchedule(
  db: Queryable,
  { id, version }: { id: string; version: number },
  by: string,
  now: number,
): Promise<boolean> {
  return (await run(db, DELETE_SCHEDULE, [id, version, now, by])).length > 0;
}

/** An occurrence that has a job. */
interface AheadRow extends Record<string, unknown> {
  readonly at: number;
  readonly job: string;
  /** False for the first job of a workflow or batch, which is not withdrawn. */
  readonly isJob: boolean;
}

/** Occurrences after the moment that have a job. */
export function readAhead(db: Queryable, schedule: string, after: number): Promise<AheadRow[]> {
  return run(db, READ_AHEAD, [schedule, after]);
}

/** Those of the jobs that have not started and not ended. */
export async function readWaitingAhead(db: Queryable, jobs: readonly string[]): Promise<Set<string>> {
  const rows = await run<{ id: string }>(db, READ_WAITING_AHEAD, [jobs]);
  return new Set(rows.map((row) => row.id));
}

/** Deletes occurrences from the ledger, as if they had not been decided yet. */
export async function forgetAhead(db: Queryable, schedule: string, ats: readonly number[]): Promise<void> {
  await run(db, FORGET_AHEAD, [schedule, ats]);
}

/** Records occurrences whose jobs were withdrawn as skipped. */
export async function skipOccurrences(
  db: Queryable,
  schedule: string,
  ats: readonly number[],
  reason: string,
): Promise<void> {
  await run(db, SKIP_OCCURRENCES, [schedule, ats, reason]);
}

/** Records occurrences that wait for the job before them as skipped. */
export async function skipWaiting(db: Queryable, schedule: string, reason: string): Promise<void> {
  await run(db, SKIP_WAITING, [schedule, reason]);
}

import { type Queryable, run, statement } from './database.js';

/** For occurrences that must not overlap: whether the previous run has ended, and which occurrences wait for it. */

/** Whether the newest run of schedule `s` has not ended; as look-ups of one row, so that no plan reads whole tables. */
const LIVES = `CASE
      WHEN s.last_workflow IS NOT NULL
      THEN coalesce((SELECT w.ended_at IS NULL FROM punctual.workflows w WHERE w.id = s.last_workflow), false)
      WHEN s.last_batch IS NOT NULL
      THEN coalesce((SELECT b.ended_at IS NULL FROM punctual.batches b WHERE b.id = s.last_batch), false)
      ELSE coalesce(
        (SELECT true FROM punctual.jobs j WHERE j.id = s.last_job),
        (SELECT true FROM punctual.later l WHERE l.id = s.last_job), false) END`;

const READ_PREVIOUS = statement(
  'read-previous',
  `
    SELECT s.id, ${LIVES} AS lives,
      EXISTS (SELECT 1 FROM punctual.occurrences o WHERE o.schedule = s.id AND o.state = 'waiting') AS awaited
    FROM unnest($1::uuid[]) u(id) JOIN punctual.schedules s ON s.id = u.id`,
);

/**
 * For each schedule with waiting occurrences the first of them, and whether the run it waits for has ended. Skips
 * through the index from schedule to schedule, so the cost does not grow with the waiting occurrences.
 */
const READ_READY = statement(
  'read-ready-occurrences',
  `
    WITH RECURSIVE waiting AS (
      (SELECT o.schedule, o.at FROM punctual.occurrences o WHERE o.state = 'waiting'
       ORDER BY o.schedule, o.at LIMIT 1)
      UNION ALL
      SELECT n.schedule, n.at FROM waiting w CROSS JOIN LATERAL (
        SELECT o.schedule, o.at FROM punctual.occurrences o WHERE o.state = 'waiting' AND o.schedule > w.schedule
        ORDER BY o.schedule, o.at LIMIT 1) n
    )
    SELECT w.schedule, w.at, s.tenant, s.name, coalesce(s.last_workflow, s.last_batch, s.last_job) AS "lastRun",
      NOT ${LIVES} AS ready
    FROM waiting w JOIN punctual.schedules s ON s.id = w.schedule`,
);

/** Whether the newest run of a schedule has not ended, and whether an occurrence waits for it. */
interface PreviousRow extends Record<string, unknown> {
  readonly id: string;
  readonly lives: boolean;
  readonly awaited: boolean;
}

/** The state of the newest run of each schedule. */
export function readPrevious(db: Queryable, ids: readonly string[]): Promise<PreviousRow[]> {
  return run(db, READ_PREVIOUS, [ids]);
}

/** The first waiting occurrence of a schedule. */
export interface FirstWaiting extends Record<string, unknown> {
  readonly schedule: string;
  readonly at: number;
  readonly tenant: string;
  readonly name: string;
  /** The job, workflow or batch that it waits for. */
  readonly lastRun: string | null;
  /** Whether the run that it waits for has ended. */
  readonly ready: boolean;
}

/** The first waiting occurrence of every schedule that has one. */
export function readFirstWaiting(db: Queryable): Promise<FirstWaiting[]> {
  return run(db, READ_READY, []);
}

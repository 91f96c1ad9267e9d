import { type Queryable, run, statement } from './database.js';
import { insertMoved, rowBytes } from './job-columns.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Keeping ended jobs whose day of history is removed. Workflows and batches are walked through, not the jobs of the day:
 * those that are older than the day and still there are few, and a day without any of their jobs costs nothing.
 */

/** The moments from `from` to before `to`. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** A workflow or batch that may have jobs in a day of history. */
export interface KeptTogether extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly endedAt: number | null;
  /** How many jobs it has. */
  readonly size: number;
}

/** What keeps jobs together. */
export type Keeper = 'workflows' | 'batches';

const SIZES = { workflows: 'w.steps', batches: 'cardinality(w.members)' } as const;

/** In the order of ids, which is about that of their age; all of the page, so that a page has a bounded number of rows. */
const readOlder = (keeper: Keeper) =>
  statement(
    `read-older-${keeper}`,
    `
    SELECT w.id, w.tenant, w.ended_at AS "endedAt", ${SIZES[keeper]} AS size FROM punctual.${keeper} w
    WHERE w.id > $1::uuid AND w.id < $2::uuid ORDER BY w.id LIMIT $3::int`,
  );

const READ_OLDER = { workflows: readOlder('workflows'), batches: readOlder('batches') };

/** Workflows or batches with ids between the two, the oldest first. */
export function readOlderThan(
  db: Queryable,
  keeper: Keeper,
  after: string,
  below: string,
  limit: number,
): Promise<KeptTogether[]> {
  return run(db, READ_OLDER[keeper], [after, below, limit]);
}

/** An ended job in a day of history. */
export interface JobOfDay extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly finishedAt: number;
  /** About the size of its row. */
  readonly bytes: number;
}

/** One look-up for each job: with a plain join, the planner may prefer to read a day that it takes for empty. */
const jobOfDay = (tenant: string, id: string, more = '') => `CROSS JOIN LATERAL (
      SELECT h.id, h.tenant, h.finished_at AS "finishedAt", ${rowBytes('h', 'job_history')} AS bytes
      FROM punctual.job_history h
      WHERE h.tenant = ${tenant} AND h.id = ${id} AND h.finished_at >= $2::bigint AND h.finished_at < $3::bigint${more}
      LIMIT 1) h`;

/** By the exact moments of the ends, also of ends that are not counted yet. */
const READ_STEPS_OF_DAY = statement(
  'read-steps-of-day',
  `
    SELECT h.* FROM punctual.steps s
    LEFT JOIN LATERAL (
      SELECT o.finished_at FROM punctual.outbox o WHERE s.finished_at IS NULL AND o.job = s.id LIMIT 1) o ON true
    ${jobOfDay('s.tenant', 's.id', ' AND h.finished_at = coalesce(s.finished_at, o.finished_at)')}
    WHERE s.workflow = ANY($1::uuid[])`,
);

const READ_MEMBERS_OF_DAY = statement(
  'read-members-of-day',
  `
    SELECT h.* FROM punctual.batches b CROSS JOIN LATERAL unnest(b.members) m(id) ${jobOfDay('b.tenant', 'm.id')}
    WHERE b.id = ANY($1::uuid[])`,
);

const READ_OF_DAY = { workflows: READ_STEPS_OF_DAY, batches: READ_MEMBERS_OF_DAY };

/** The jobs of these workflows or batches that ended within the span and are in history. */
export function readJobsOfDay(
  db: Queryable,
  keeper: Keeper,
  ids: readonly string[],
  { from, to }: TimeSpan,
): Promise<JobOfDay[]> {
  return run(db, READ_OF_DAY[keeper], [ids, from, to]);
}

/** One statement, so that a job is in exactly one of the two tables, whatever happens. */
const KEEP_JOBS = leaderStatement(
  'keep-jobs',
  `moved AS (
    DELETE FROM punctual.job_history h USING unnest($4::uuid[], $5::text[], $6::bigint[]) u(id, tenant, finished_at)
    WHERE h.tenant = u.tenant AND h.id = u.id AND h.finished_at = u.finished_at
      AND h.finished_at >= $7::bigint AND h.finished_at < $8::bigint AND ${WHILE_TERM_LASTS}
    RETURNING h.*
  ), answer AS (
    ${insertMoved({ from: 'job_history', to: 'job_history_kept', rows: 'moved', set: {} })}
    RETURNING id
  )`,
);

/** Moves ended jobs out of their day, all of which is within the span; answers how many were still there. */
export async function keepJobs(
  db: Queryable,
  term: TermKey,
  jobs: readonly JobOfDay[],
  { from, to }: TimeSpan,
): Promise<number> {
  const moved = await runAsLeader(db, term, KEEP_JOBS, [
    jobs.map(({ id }) => id),
    jobs.map(({ tenant }) => tenant),
    jobs.map(({ finishedAt }) => finishedAt),
    ...[from, to],
  ]);
  return moved.length;
}

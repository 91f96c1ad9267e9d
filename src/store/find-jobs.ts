import type { JobState } from '../core/job.js';
import { FIRST_UUID, nextUuid, uuidTime } from '../core/uuid.js';
import { byIndex, NOT_CLAIMED } from './batch-statement.js';
import { type Pool, type Queryable, run, type Statement, statement, withHotPlans } from './database.js';
import { rowBytes } from './job-columns.js';
import { CLOCK_ERROR_MS } from './read-job.js';

/**
 * Finding jobs to be changed, newest first, page by page. A page ends when it is full, or when so many rows were
 * examined: a filter that fits one job in a million must not make a statement of minutes. The position that a page has
 * reached is an id, and the next page begins below it.
 */

/** Rows of each table that one statement examines. */
const EXAMINED = 10_000;

const QUEUE_OF_NAME = '(SELECT q.id FROM punctual.queues q WHERE q.tenant = $1 AND q.name = $7)';

/** The SQL for whether an error has the code. Only errors that contain the code as a JSON string are parsed. */
export const hasErrorCode = (error: string, code: string): string =>
  `CASE WHEN strpos(${error}::text, to_json(${code})::text) > 0
          THEN punctual.readable(${error}) ->> 'code' = ${code} END`;

/** The last id of a part that is full; null when the part has all there is. */
const reachOf = (part: string): string =>
  `(SELECT id FROM ${part} ORDER BY id DESC OFFSET $4::int - 1 LIMIT 1)`;

/**
 * Jobs that have not ended. $9 and $10 say whether waiting and running ones are wanted, $11 whether those on hold or the
 * others; null is both.
 */
const findWaiting = (
  name: string,
  ofSchedule: { readonly live: string; readonly later: string },
): Statement =>
  statement(
    name,
    `
    WITH live AS MATERIALIZED (
      SELECT j.id, j.bytes, j.tenant = $1 AND ($6::text IS NULL OR j.task = $6)
        AND ($7::text IS NULL OR j.queue = ${QUEUE_OF_NAME}) AND ($8::uuid IS NULL OR c.worker = $8)
        AND CASE WHEN c.job IS NULL THEN $9::boolean ELSE $10::boolean END AS fits
      FROM (
        SELECT j.*, ${rowBytes('j', 'jobs')} AS bytes FROM punctual.jobs j
        WHERE j.id < $2::uuid AND j.id >= $3::uuid AND $11::boolean IS NOT TRUE${ofSchedule.live}
        ORDER BY j.id DESC LIMIT $4::int) j
      LEFT JOIN punctual.claims c ON ${byIndex('c.job', 'j.id')}
    ), not_admitted AS MATERIALIZED (
      SELECT l.id, l.bytes, l.created_at, l.created_by, l.submission IS NOT NULL AS raw, $9 AND $8 IS NULL
        AND ($11 IS NULL OR l.held = $11)
        AND ($6 IS NULL OR coalesce(l.task, punctual.readable(l.submission) ->> 'task') = $6)
        AND ($7 IS NULL OR CASE WHEN l.submission IS NULL THEN l.queue = ${QUEUE_OF_NAME}
          ELSE coalesce(punctual.readable(l.submission) ->> 'queue', 'default') = $7 END) AS fits
      FROM (
        SELECT l.*, ${rowBytes('l', 'later')} AS bytes FROM punctual.later l
        WHERE l.tenant = $1 AND l.id < $2::uuid AND l.id >= $3::uuid${ofSchedule.later}
        ORDER BY l.id DESC LIMIT $4::int) l
    )
    SELECT f.*, r.reach FROM (SELECT greatest(${reachOf('live')}, ${reachOf('not_admitted')}) AS reach) r
    LEFT JOIN LATERAL (
      SELECT id, bytes, false AS raw, NULL::bigint AS "createdAt", NULL AS "createdBy" FROM live
      WHERE fits AND (r.reach IS NULL OR id >= r.reach)
      UNION ALL
      SELECT id, bytes, raw, created_at, created_by FROM not_admitted
      WHERE fits AND (r.reach IS NULL OR id >= r.reach)
      ORDER BY id DESC LIMIT $5::int) f ON true`,
  );

const FIND_WAITING = findWaiting('find-waiting-jobs', { live: '', later: '' });
const FIND_WAITING_OF_SCHEDULE = findWaiting('find-waiting-jobs-of-schedule', {
  live: ' AND j.tenant = $1 AND j.schedule = $12',
  later: ' AND l.schedule = $12',
});

/** Jobs that have ended. $10 are their states, $11 leaves out those that are never started again. */
const findEnded = (name: string, condition: string): Statement =>
  statement(
    name,
    `
    WITH ended AS MATERIALIZED (
      SELECT h.id, h.bytes, h.state = ANY ($10::text[]) AND NOT ($11::boolean AND h.at_most_once)
        AND ($6::text IS NULL OR h.task = $6) AND ($7::text IS NULL OR h.queue = ${QUEUE_OF_NAME})
        AND ($8::uuid IS NULL OR h.worker = $8)
        AND ($9::text IS NULL OR ${hasErrorCode('h.error', '$9')}) AS fits
      FROM (
        SELECT h.*, ${rowBytes('h', 'job_history')} AS bytes FROM punctual.job_history h
        WHERE h.tenant = $1 AND h.id < $2::uuid AND h.id >= $3::uuid AND h.finished_at >= $12${condition}
        ORDER BY h.id DESC LIMIT $4::int) h
    )
    SELECT f.*, r.reach FROM (SELECT ${reachOf('ended')} AS reach) r
    LEFT JOIN LATERAL (
      SELECT id, bytes, false AS raw, NULL::bigint AS "createdAt", NULL AS "createdBy" FROM ended
      WHERE fits ORDER BY id DESC LIMIT $5::int) f ON true`,
  );

const FIND_ENDED = findEnded('find-ended-jobs', '');
/** By the index of failed jobs. */
const FIND_FAILED = findEnded('find-failed-jobs', ` AND h.state = 'failed'`);
const FIND_ENDED_OF_SCHEDULE = findEnded('find-ended-jobs-of-schedule', ' AND h.schedule = $13');

/** Which jobs to find. */
export interface JobSearch {
  readonly places: 'waiting' | 'ended';
  readonly states: readonly JobState[];
  /** Only jobs that are on hold, or only those that are not. */
  readonly held?: boolean | undefined;
  /** Without jobs that are never started again. */
  readonly repeatable?: boolean;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly worker?: string | undefined;
  readonly schedule?: string | undefined;
  readonly errorCode?: string | undefined;
  /** The lowest id. */
  readonly from?: string | undefined;
  /** Only this job. */
  readonly id?: string | undefined;
}

/** A job that was found. */
export interface FoundJob {
  readonly id: string;
  /** About the size of its row. */
  readonly bytes: number;
  /** A submission of a caller's transaction that has not been parsed yet; then the two fields below are set. */
  readonly raw: boolean;
  readonly createdAt: number | null;
  readonly createdBy: string | null;
}

/** Jobs that were found, and the id below which to go on; null when there are no more. */
export interface FoundPage {
  readonly jobs: readonly FoundJob[];
  readonly next: string | null;
}

/** Finds up to `limit` jobs of a tenant with ids below the given one, newest first. To be run with hot plans. */
export async function findJobs(
  db: Queryable,
  tenant: string,
  search: JobSearch,
  below: string,
  limit: number,
  examined = EXAMINED,
): Promise<FoundPage> {
  // Jobs that have not ended have no error.
  if (search.places === 'waiting' && search.errorCode !== undefined) return { jobs: [], next: null };
  const { id, from = FIRST_UUID } = search;
  if (id !== undefined) {
    if (id < from || id >= below) return { jobs: [], next: null };
    const { jobs } = await findJobs(db, tenant, { ...search, id: undefined, from: id }, nextUuid(id), 1);
    return { jobs, next: null };
  }
  const { text, values } = statementOf(search);
  const { task = null, queue = null, worker = null } = search;
  const rows = await run<FoundRow>(db, text, [
    ...[tenant, below, from, examined, limit, task, queue, worker],
    ...values,
  ]);
  const jobs = rows.filter((row) => row.id !== null);
  const last = jobs.at(-1)?.id;
  return { jobs, next: jobs.length === limit ? last! : positionAt(rows[0]?.reach ?? null, last, below) };
}

/**
 * Where to go on after the last row that was examined. It may be another tenant's, whose ids nobody else may learn, so
 * its random digits are replaced by the highest; what is examined twice thereby was made within a fraction of a
 * millisecond. It never lies above a job that was found.
 */
function positionAt(reach: string | null, lastFound: string | undefined, below: string): string | null {
  if (reach === null) return null;
  const hidden = `${reach.slice(0, 18)}-ffff-ffffffffffff`;
  const position = lastFound !== undefined && lastFound < hidden ? lastFound : hidden;
  // A search must get on, also through a page of ids that differ in nothing but those digits.
  return position < below ? position : reach;
}

type FoundRow = FoundJob & { readonly reach: string | null } & Record<string, unknown>;

function statementOf(search: JobSearch): { readonly text: Statement; readonly values: readonly unknown[] } {
  const { states, schedule, errorCode } = search;
  const ofSchedule = schedule === undefined ? [] : [schedule];
  if (search.places === 'waiting') {
    const wanted = [states.includes('pending'), states.includes('running'), search.held ?? null];
    const text = schedule === undefined ? FIND_WAITING : FIND_WAITING_OF_SCHEDULE;
    return { text, values: [...wanted, ...ofSchedule] };
  }
  const endedSince = uuidTime(search.from ?? FIRST_UUID) - CLOCK_ERROR_MS;
  const onlyFailed = states.length === 1 && states[0] === 'failed';
  return {
    text: schedule !== undefined ? FIND_ENDED_OF_SCHEDULE : onlyFailed ? FIND_FAILED : FIND_ENDED,
    values: [errorCode ?? null, states, search.repeatable ?? false, endedSince, ...ofSchedule],
  };
}

/** Counts jobs while `goOn` holds for the number so far; also answers with the id below which to go on. */
export async function countJobs(
  pool: Pool,
  tenant: string,
  search: JobSearch,
  below: string,
  goOn: (count: number) => boolean,
): Promise<{ readonly count: number; readonly next: string | null }> {
  let count = 0;
  let next: string | null = below;
  do {
    const below: string = next;
    const page: FoundPage = await withHotPlans(pool, (db) =>
      findJobs(db, tenant, search, below, COUNTED_AT_ONCE),
    );
    count += page.jobs.length;
    next = page.next;
  } while (next !== null && goOn(count));
  return { count, next };
}

/** As many as are examined, so that none is examined twice. */
const COUNTED_AT_ONCE = EXAMINED;

/** Where jobs are; in one statement over all places, or a job that moves would seem to be gone. */
const LOCATE_JOBS = statement(
  'locate-jobs',
  `
    SELECT j.id, 'live' AS place, CASE WHEN ${NOT_CLAIMED} THEN 'pending' ELSE 'running' END AS state, false AS held,
      false AS raw, j.at_most_once AS "atMostOnce", j.run_at AS "runAt", j.start_before AS "startBefore",
      j.created_at AS "createdAt", j.created_by AS "createdBy", ${rowBytes('j', 'jobs')} AS bytes
    FROM unnest($2::uuid[]) u(id) JOIN punctual.jobs j ON ${byIndex('j.id', 'u.id')} WHERE j.tenant = $1
    UNION ALL
    SELECT l.id, 'later', 'pending', l.held, l.submission IS NOT NULL, coalesce(l.at_most_once, false),
      coalesce(l.run_at, l.admit_at), l.start_before, l.created_at, l.created_by, ${rowBytes('l', 'later')}
    FROM unnest($2::uuid[]) u(id) JOIN punctual.later l ON ${byIndex('l.id', 'u.id')} WHERE l.tenant = $1
    UNION ALL
    SELECT h.id, 'history', h.state, false, false, h.at_most_once, h.run_at, NULL, h.created_at, h.created_by,
      ${rowBytes('h', 'job_history')}
    FROM unnest($2::uuid[]) u(id) JOIN punctual.job_history h
      ON h.tenant = $1 AND ${byIndex('h.id', 'u.id')} AND h.finished_at >= $3`,
);

/** Where a job is, and what decides about changes of it. */
export interface LocatedJob extends Record<string, unknown> {
  readonly id: string;
  readonly place: 'live' | 'later' | 'history';
  readonly state: Exclude<JobState, 'blocked'>;
  readonly held: boolean;
  readonly raw: boolean;
  readonly atMostOnce: boolean;
  readonly runAt: number;
  readonly startBefore: number | null;
  readonly createdAt: number;
  readonly createdBy: string;
  /** About the size of its row. */
  readonly bytes: number;
}

/** Those of the jobs that the tenant has, by id. */
export async function locateJobs(
  db: Queryable,
  tenant: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, LocatedJob>> {
  const rows = await run<LocatedJob>(db, LOCATE_JOBS, [tenant, ids, earliestEndOf(ids)]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** The earliest moment at which one of the jobs can have ended, by their ids. */
export function earliestEndOf(ids: readonly string[]): number {
  return ids.reduce((least, id) => Math.min(least, uuidTime(id)), Number.MAX_SAFE_INTEGER) - CLOCK_ERROR_MS;
}

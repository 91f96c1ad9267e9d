import type { JobState } from '../core/job.js';
import { uuidTime } from '../core/uuid.js';
import { byIndex, NOT_CLAIMED } from './batch-statement.js';
import { type Pool, type Queryable, run, type Statement, statement, withHotPlans } from './database.js';
import { allEnded } from './ended-places.js';
import { rowBytes } from './job-columns.js';
import {
  type ExaminedLive,
  type JobSearch,
  positionAt,
  prepareSearch,
  type SearchIndex,
  Stride,
  searchParts,
} from './job-search.js';
import { CLOCK_ERROR_MS } from './read-job.js';

/** Finding jobs to be listed or changed, newest first, page by page, and where they are now. */

const finding = (name: string, index: SearchIndex): Statement =>
  statement(
    name,
    `
    WITH ${searchParts(index)}
    SELECT f.id, f.place, f.bytes, f.raw, f.created_at AS "createdAt", f.created_by AS "createdBy", p.reach, p.own, p.live,
      p.others, p.few
    FROM position p LEFT JOIN found f ON true ORDER BY f.id DESC`,
  );

const FIND: Readonly<Record<SearchIndex, Statement>> = {
  id: finding('find-jobs', 'id'),
  queue: finding('find-jobs-by-queue', 'queue'),
  failed: finding('find-failed-jobs', 'failed'),
  running: finding('find-running-jobs', 'running'),
  schedule: finding('find-jobs-of-schedule', 'schedule'),
  ids: finding('find-named-jobs', 'ids'),
};

/** A job that was found. */
export interface FoundJob {
  readonly id: string;
  readonly place: 'live' | 'later' | 'history';
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
  /** How many rows of the tenant were examined, and how many in all; others are no business of the tenant. */
  readonly examined: number;
  readonly examinedInAll: number;
  readonly examinedLive: ExaminedLive;
}

const NOTHING: FoundPage = {
  ...{ jobs: [], next: null, examined: 0, examinedInAll: 0 },
  examinedLive: { live: 0, others: 0, few: null },
};

/**
 * Finds up to `limit` jobs of a tenant with ids below the given one, newest first, and examines at most `examine` rows of
 * each place. To be run with hot plans.
 */
export async function searchJobs(
  db: Queryable,
  tenant: string,
  search: JobSearch,
  below: string,
  limit: number,
  examine: number,
  byQueue: boolean,
): Promise<FoundPage> {
  const prepared = prepareSearch(search, byQueue);
  if (prepared === null) return NOTHING;
  const { index, from, values } = prepared;
  const rows = await run<FoundRow>(db, FIND[index], [tenant, below, from, examine, limit, ...values]);
  const jobs = rows.filter((row) => row.id !== null);
  const last = jobs.at(-1)?.id;
  const { reach, own, live, others, few } = rows[0]!;
  return {
    jobs,
    next: jobs.length === limit ? last! : positionAt(reach ?? null, last, below),
    examined: own,
    examinedInAll: Math.max(own, live),
    examinedLive: { live, others, few },
  };
}

/** The same, with as many rows as the stride says, which learns how long it took. */
export async function findJobs(
  db: Queryable,
  tenant: string,
  search: JobSearch,
  below: string,
  limit: number,
  stride = new Stride(search),
): Promise<FoundPage> {
  const askedAt = performance.now();
  const page = await searchJobs(db, tenant, search, below, limit, stride.rows, stride.byQueue);
  stride.took(performance.now() - askedAt, false);
  stride.met(page.examinedLive);
  return page;
}

interface FoundRow extends FoundJob, ExaminedLive, Record<string, unknown> {
  readonly reach: string | null;
  readonly own: number;
}

/** Counts jobs while `goOn` holds for the number so far; also answers with the id below which to go on. */
export async function countJobs(
  pool: Pool,
  tenant: string,
  search: JobSearch,
  below: string,
  goOn: (count: number) => boolean,
): Promise<{ readonly count: number; readonly next: string | null }> {
  const stride = new Stride(search);
  let count = 0;
  let next: string | null = below;
  do {
    const below: string = next;
    const page: FoundPage = await withHotPlans(pool, (db) =>
      findJobs(db, tenant, search, below, COUNTED_AT_ONCE, stride),
    );
    count += page.jobs.length;
    next = page.next;
  } while (next !== null && goOn(count));
  return { count, next };
}

/** As many as are examined at most, so that none is examined twice. */
const COUNTED_AT_ONCE = 10_000;

/** Where jobs are; in one statement over all places, or a job that moves would seem to be gone. */
const LOCATE_JOBS = statement(
  'locate-jobs',
  `
    SELECT j.id, 'live' AS place, CASE WHEN ${NOT_CLAIMED} THEN 'pending' ELSE 'running' END AS state, false AS held,
      false AS raw, j.at_most_once AS "atMostOnce", j.run_at AS "runAt", j.start_before AS "startBefore",
      j.created_at AS "createdAt", j.created_by AS "createdBy", ${rowBytes('j', 'jobs')} AS bytes, j.workflow,
      j.batch, false AS blocked
    FROM unnest($2::uuid[]) u(id) JOIN punctual.jobs j ON ${byIndex('j.id', 'u.id')} WHERE j.tenant = $1
    UNION ALL
    SELECT l.id, 'later', CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END, l.held, l.submission IS NOT NULL, coalesce(l.at_most_once, false),
      coalesce(l.run_at, l.admit_at), l.start_before, l.created_at, l.created_by, ${rowBytes('l', 'later')}, l.workflow, l.batch, l.blocked
    FROM unnest($2::uuid[]) u(id) JOIN punctual.later l ON ${byIndex('l.id', 'u.id')} WHERE l.tenant = $1
    UNION ALL
    SELECT h.id, 'history', h.state, false, false, h.at_most_once, h.run_at, NULL, h.created_at, h.created_by,
      ${rowBytes('h', 'job_history')}, h.workflow, h.batch, false
    FROM unnest($2::uuid[]) u(id) JOIN ${allEnded('h')}
      ON h.tenant = $1 AND ${byIndex('h.id', 'u.id')} AND h.finished_at >= $3`,
);

/** Where a job is, and what decides about changes of it. */
export interface LocatedJob extends Record<string, unknown> {
  readonly id: string;
  readonly place: 'live' | 'later' | 'history';
  readonly state: JobState;
  readonly held: boolean;
  readonly raw: boolean;
  readonly atMostOnce: boolean;
  readonly runAt: number;
  readonly startBefore: number | null;
  readonly createdAt: number;
  readonly createdBy: string;
  /** The batch that it is a member of. */
  readonly batch: string | null;
  /** About the size of its row. */
  readonly bytes: number;
  /** The workflow that it is a step of. */
  readonly workflow: string | null;
  /** Whether it waits for other jobs. */
  readonly blocked: boolean;
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

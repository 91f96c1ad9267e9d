import { byIndex, NOT_CLAIMED, NOT_HELD } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { type CamelRowOf, selectCamel } from './job-columns.js';
import { type JobRow, sizeKib } from './job-row.js';

/**
 * Reading waiting jobs: which segments have any, pages of a segment from a cursor, and new jobs. Steps of workflows on hold
 * are left out: no claim takes them, and whoever releases the workflow reads them.
 */

/** The columns that order jobs, and those that choosing needs. */
export const WAITING = ['id', 'tenant', 'queue', 'needs', 'lane', 'rank', 'run_at', 'start_before'] as const;

/** A waiting job as the dispatcher knows it: what choosing needs, nothing more. */
export interface Waiting extends CamelRowOf<'jobs', (typeof WAITING)[number] | 'size_kib'> {
  /** The concurrency key. */
  readonly key: string | null;
  /** The fence of its next attempt. */
  readonly fence: number;
  /** The row, if this process stored it; only before the first attempt, and only while memory has room for it. */
  readonly row?: JobRow | null;
}

/** A new job as the dispatcher knows it, from its row and without reading it back. */
export function toWaiting(row: JobRow): Waiting & { where: 'out' } {
  const { definition } = row;
  return {
    id: row.id,
    tenant: definition.tenant,
    queue: definition.queue,
    needs: definition.needs,
    lane: definition.lane,
    key: definition.concurrency_key,
    rank: definition.rank,
    runAt: definition.run_at,
    fence: 1,
    startBefore: definition.start_before,
    sizeKib: sizeKib(row),
    row,
    // Set by the backlog; present from the start, so that the shape of the object never changes.
    where: 'out',
  };
}

/** The columns of a waiting job in a select; `size` is the SQL for its size. */
export function selectWaiting(alias: string, size: string): string {
  return `${selectCamel(alias, WAITING)}, ${alias}.concurrency_key AS "key",
      ${alias}.attempts + 1 AS fence, ${size} AS "sizeKib"`;
}

/** A position in one rank of a segment, from which to read on, itself included. */
export interface Cursor {
  readonly queue: number;
  readonly needs: number;
  readonly lane: number;
  readonly rank: number;
  readonly runAt: number;
  readonly id: string;
}

/** A position before every job of a segment. */
export const SEGMENT_START = { runAt: -1, id: '00000000-0000-0000-0000-000000000000' } as const;

/** Jobs from before sizes were recorded count with the stored size of their payload. */
const AS_THEY_WAIT = selectWaiting('j', 'greatest(j.size_kib, pg_column_size(j.payload) >> 10)');

/**
 * Skips through the index from segment to segment instead of reading every row: the cost grows with the segments and
 * with the dead rows before the first waiting job of each, but not with the jobs. It returns the position of that job,
 * so that the first page need not pass the dead rows again.
 */
const FIND_SEGMENTS = statement(
  'find-segments',
  `
    WITH RECURSIVE segment AS (
      SELECT $1::int AS queue, $2::int AS needs, $3::int AS lane, $4::smallint AS rank,
        -1::bigint AS "runAt", NULL::uuid AS id
      UNION ALL
      SELECT n.* FROM segment s CROSS JOIN LATERAL (
        SELECT j.queue, j.needs, j.lane, j.rank, j.run_at, j.id FROM punctual.jobs j
        WHERE (j.queue, j.needs, j.lane, j.rank) > (s.queue, s.needs, s.lane, s.rank) AND ${NOT_CLAIMED}
        ORDER BY j.queue, j.needs, j.lane, j.rank, j.run_at, j.id LIMIT 1) n
    )
    SELECT queue, needs, lane, rank, "runAt", id FROM segment OFFSET 1 LIMIT $5`,
);

const READ_PAGES = statement(
  'read-pages',
  `
    SELECT p.* FROM unnest($1::int[], $2::int[], $3::int[], $4::smallint[], $5::bigint[], $6::uuid[])
      c(queue, needs, lane, rank, run_at, id)
    CROSS JOIN LATERAL (
      SELECT ${AS_THEY_WAIT} FROM punctual.jobs j
      WHERE j.queue = c.queue AND j.needs = c.needs AND j.lane = c.lane AND j.rank = c.rank
        AND (j.run_at, j.id) >= (c.run_at, c.id) AND ${NOT_HELD}
      ORDER BY j.run_at, j.id
      LIMIT $7) p`,
);

/**
 * The look-back: live jobs in one range of the primary key for all queues (a range per queue takes seconds at 100,000
 * queues), whether jobs of `later` are to be admitted or wait for artifacts, and whether callers' transactions have asked to cancel jobs. The
 * ids come as one text: under load there are thousands, and reading them row by row takes ten times as long.
 */
const LOOK_BACK = statement(
  'look-back',
  `
    SELECT
      array_to_string(ARRAY(
        SELECT j.id FROM punctual.jobs j WHERE j.id >= $1::uuid AND j.id > $2::uuid ORDER BY j.id LIMIT $3), ',') AS ids,
      EXISTS (SELECT 1 FROM punctual.later WHERE NOT held AND NOT blocked AND admit_at <= $4) AS admit,
      EXISTS (SELECT 1 FROM punctual.cancel_requests WHERE id > 0) AS cancel,
      EXISTS (SELECT 1 FROM punctual.steps WHERE wake_at <= $4) AS wake,
      (SELECT true FROM punctual.later WHERE artifact IS NOT NULL ORDER BY artifact LIMIT 1) IS NOT NULL AS artifacts`,
);

/** One rank of a segment: jobs that differ, for choosing, only in when they are due. */
export interface SegmentRank {
  readonly queue: number;
  readonly needs: number;
  readonly lane: number;
  readonly rank: number;
}

/** Sorts before every segment. */
export const BEFORE_ALL_SEGMENTS: SegmentRank = { queue: -1, needs: -1, lane: 0, rank: 0 };

/** Up to `limit` segments, after the given one, that have waiting jobs, each with the position of the first. */
export function findSegments(
  db: Queryable,
  after: SegmentRank,
  limit: number,
): Promise<(Cursor & Record<string, unknown>)[]> {
  return run(db, FIND_SEGMENTS, [after.queue, after.needs, after.lane, after.rank, limit]);
}

/** Up to `limit` jobs from each cursor on, in order per segment; running jobs are among them. */
export function readPages(
  db: Queryable,
  cursors: readonly Cursor[],
  limit: number,
): Promise<(Waiting & Record<string, unknown>)[]> {
  return run(db, READ_PAGES, [
    cursors.map((cursor) => cursor.queue),
    cursors.map((cursor) => cursor.needs),
    cursors.map((cursor) => cursor.lane),
    cursors.map((cursor) => cursor.rank),
    cursors.map((cursor) => cursor.runAt),
    cursors.map((cursor) => cursor.id),
    limit,
  ]);
}

interface LookBack {
  /** Ids of jobs, most of which are known from hints. */
  readonly ids: readonly string[];
  /** Whether jobs of `later` are to be admitted. */
  readonly admit: boolean;
  /** Whether there are requests to cancel jobs. */
  readonly cancel: boolean;
  /** Whether steps of workflows have waited long enough. */
  readonly wake: boolean;
  /** Whether jobs wait for artifacts. */
  readonly artifacts: boolean;
}

/** Live jobs with ids from `from` on and after `after`, in order of id. */
export async function lookBack(
  db: Queryable,
  from: string,
  after: string,
  limit: number,
  now: number,
): Promise<LookBack> {
  type Row = { ids: string; admit: boolean; cancel: boolean; wake: boolean; artifacts: boolean };
  const [row] = await run<Row>(db, LOOK_BACK, [from, after, limit, now]);
  return {
    ids: row?.ids ? row.ids.split(',') : [],
    admit: row?.admit ?? false,
    cancel: row?.cancel ?? false,
    wake: row?.wake ?? false,
    artifacts: row?.artifacts ?? false,
  };
}

const READ_WAITING = statement(
  'read-waiting',
  `
    SELECT ${AS_THEY_WAIT} FROM unnest($1::uuid[]) u(id) JOIN punctual.jobs j ON ${byIndex('j.id', 'u.id')}
    WHERE ${NOT_CLAIMED} AND ${NOT_HELD}`,
);

/** Those of the given jobs that wait in the live table, without steps of workflows on hold. */
export function readWaiting(
  db: Queryable,
  ids: readonly string[],
): Promise<(Waiting & Record<string, unknown>)[]> {
  return run(db, READ_WAITING, [ids]);
}

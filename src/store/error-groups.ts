import type { KeyLimits } from '../core/access.js';
import { LAST_UUID } from '../core/uuid.js';
import { type Queryable, run, statement } from './database.js';

/**
 * Failed jobs by how they have failed. They are read by the index of failed jobs, newest first, in short portions, and their
 * number is bounded, so that what it costs does not depend on how many jobs are in the history. Jobs that succeed pay nothing.
 */

/** Jobs that one statement reads. */
const PORTION = 200;
/** Days of history that hold no job of the window are not looked into. */
const DAY_MS = 86_400_000;

const READ_GROUPS = statement(
  'read-error-groups',
  `
    WITH examined AS MATERIALIZED (
      SELECT h.id, h.finished_at, h.task, h.queue, h.error FROM punctual.job_history h
      WHERE h.tenant = $1::text AND h.state = 'failed' AND h.id < $2::uuid AND h.finished_at >= $3::bigint
      ORDER BY h.id DESC LIMIT $4::int
    ), shaped AS MATERIALIZED (
      SELECT e.id, e.task, e.finished_at, punctual.error_fingerprint(e.task, e.error) AS fingerprint, e.error
      FROM examined e
      WHERE e.finished_at >= $5::bigint AND e.finished_at < $5::bigint + $6::bigint * $7::bigint
        AND ($8::text[] IS NULL OR e.queue = ANY (ARRAY(
          SELECT q.id FROM punctual.queues q WHERE q.tenant = $1::text AND q.name = ANY ($8::text[]))))
        AND ($9::text[] IS NULL OR e.task = ANY ($9::text[]))
    ), groups AS (
      SELECT s.fingerprint, (s.finished_at - $5::bigint) / $6::bigint AS slot, count(*) AS count,
        min(s.finished_at) AS first, max(s.finished_at) AS last, (array_agg(s.id ORDER BY s.finished_at DESC))[1] AS example
      FROM shaped s GROUP BY 1, 2
    ), reached AS (
      SELECT count(*) AS examined, (array_agg(id ORDER BY id))[1] AS reach FROM examined
    )
    SELECT r.examined, r.reach, g.*, s.task, punctual.readable(s.error) ->> 'code' AS code,
      punctual.error_shape(s.error) AS message
    FROM reached r LEFT JOIN groups g ON true LEFT JOIN shaped s ON s.id = g.example`,
);

/** The window of time, in intervals of equal length. */
export interface ErrorWindow {
  readonly from: number;
  readonly intervalMs: number;
  readonly intervals: number;
}

/** Failed jobs that have failed alike. */
export interface ErrorGroup {
  readonly fingerprint: string;
  readonly task: string | null;
  readonly code: string | null;
  readonly message: string;
  count: number;
  first: number;
  last: number;
  /** The job that failed last. */
  example: string;
  /** Jobs per interval. */
  readonly counts: number[];
}

/** The groups, and whether these are all of the window. How many others were passed over is told to nobody. */
export interface ErrorGroups {
  readonly groups: readonly ErrorGroup[];
  readonly complete: boolean;
}

interface Row extends Record<string, unknown> {
  readonly examined: number;
  readonly reach: string | null;
  readonly fingerprint: string | null;
  readonly slot: number;
  readonly count: number;
  readonly first: number;
  readonly last: number;
  readonly example: string;
  readonly task: string | null;
  readonly code: string | null;
  readonly message: string | null;
}

/** Groups the newest failed jobs of a tenant, at most so many. Each portion is read by `read`, in a transaction of its own. */
export async function readErrorGroups(
  read: <T>(work: (db: Queryable) => Promise<T>) => Promise<T>,
  tenant: string,
  { from, intervalMs, intervals }: ErrorWindow,
  limits: KeyLimits | null,
  most: number,
): Promise<ErrorGroups> {
  const groups = new Map<string, ErrorGroup>();
  const firstDay = Math.floor(from / DAY_MS) * DAY_MS;
  let below: string = LAST_UUID;
  let examined = 0;
  for (;;) {
    const portion = Math.min(PORTION, most - examined);
    const values = [tenant, below, firstDay, portion, from, intervalMs, intervals, limits?.queues ?? null];
    const rows = await read((db) => run<Row>(db, READ_GROUPS, [...values, limits?.tasks ?? null]));
    for (const row of rows) if (row.fingerprint !== null) addRow(groups, row, intervals);
    const { examined: found, reach } = rows[0]!;
    examined += Number(found);
    if (Number(found) < portion || reach === null) return { groups: [...groups.values()], complete: true };
    if (examined >= most) return { groups: [...groups.values()], complete: false };
    below = reach;
  }
}

function addRow(groups: Map<string, ErrorGroup>, row: Row, intervals: number): void {
  const [count, first, last] = [Number(row.count), Number(row.first), Number(row.last)];
  const { fingerprint, task, code, message } = row;
  let group = groups.get(fingerprint!);
  if (!group) {
    const counts = Array.from({ length: intervals }, () => 0);
    const about = { fingerprint: fingerprint!, task, code, message: message ?? '' };
    group = { ...about, count: 0, first, last, example: row.example, counts };
    groups.set(fingerprint!, group);
  }
  group.count += count;
  group.first = Math.min(group.first, first);
  if (last > group.last) {
    group.last = last;
    group.example = row.example;
  }
  group.counts[Number(row.slot)]! += count;
}

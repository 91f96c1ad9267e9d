import { type Queryable, run, statement } from './database.js';

/** What becomes due ahead: jobs outside the live table, and schedules. Every statement looks at a bounded number of rows. */

/** Rows that one statement looks at, whosever they are. */
const LATER_PORTION = 10_000;
const SCHEDULE_PORTION = 200;
/** Jobs of one moment that are passed over by counting; beyond that the moment is given up. */
const MOST_AT_ONCE = 50_000;

const COUNT_LATER = statement(
  'count-later-by-minute',
  `
    WITH examined AS MATERIALIZED (
      SELECT l.admit_at, coalesce(l.run_at, l.admit_at) AS run_at, l.tenant FROM punctual.later l
      WHERE NOT l.held AND NOT l.blocked AND l.admit_at >= $2::bigint AND l.admit_at < $3::bigint
      ORDER BY l.admit_at OFFSET $4::int LIMIT ${LATER_PORTION}
    ), reached AS (
      SELECT count(*) AS examined, max(admit_at) AS last FROM examined
    )
    SELECT r.examined, r.last, (SELECT count(*) FROM examined e WHERE e.admit_at = r.last) AS ties, c.minute, c.count
    FROM reached r LEFT JOIN (
      SELECT e.run_at / 60000 AS minute, count(*) AS count FROM examined e
      WHERE $1::text IS NULL OR e.tenant = $1 GROUP BY 1) c ON true`,
);

/** Without their payloads, which may be large. */
const READ_SCHEDULES = statement(
  'read-schedules-ahead',
  `
    SELECT s.id, s.tenant, s.name, s.fire_at AS "fireAt", s.created_at AS "createdAt", json_strip_nulls(json_build_object(
      'cron', d.value -> 'cron', 'every', d.value -> 'every', 'at', d.value -> 'at', 'timezone', d.value -> 'timezone',
      'dst', d.value -> 'dst', 'startAt', d.value -> 'startAt', 'endAt', d.value -> 'endAt'))::text AS timing
    FROM (
      SELECT * FROM punctual.schedules
      WHERE (fire_at, id) > ($1::bigint, $2::uuid) AND fire_at < $3::bigint ORDER BY fire_at, id LIMIT ${SCHEDULE_PORTION}) s
    CROSS JOIN LATERAL (
      SELECT CASE WHEN strpos(s.definition::text, '\\u') = 0 THEN s.definition ELSE punctual.readable(s.definition) END AS value
    ) d ORDER BY s.fire_at, s.id`,
);

/** Adds the jobs of a tenant, or of all, that wait outside the live table; answers whether these are all. */
export async function countLater(
  db: Queryable,
  tenant: string | null,
  from: number,
  counts: number[],
  most: number,
): Promise<boolean> {
  interface Row extends Record<string, unknown> {
    readonly examined: number;
    readonly last: number | null;
    readonly ties: number;
    readonly minute: number | null;
    readonly count: number;
  }
  const to = from + counts.length * 60_000;
  let [cursor, passed, examined] = [0, 0, 0];
  let complete = true;
  while (examined < most) {
    const rows = await run<Row>(db, COUNT_LATER, [tenant, cursor, to, passed]);
    for (const { minute, count } of rows) {
      const index = minute === null ? -1 : Number(minute) - Math.floor(from / 60_000);
      if (index >= 0 && index < counts.length) counts[index]! += Number(count);
    }
    const [first] = rows;
    const found = Number(first!.examined);
    examined += found;
    if (found < LATER_PORTION) return complete;
    const last = Number(first!.last);
    passed = last === cursor ? passed + found : Number(first!.ties);
    cursor = last;
    if (passed > MOST_AT_ONCE) {
      complete = false;
      [cursor, passed] = [last + 1, 0];
    }
  }
  return false;
}

/** When a schedule is due, as JSON text. */
export interface ScheduleAhead extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly fireAt: number;
  readonly createdAt: number;
  readonly timing: string;
}

/** The schedules of everybody that are due before a moment, after the last one that was read. */
export function readSchedulesAhead(
  db: Queryable,
  after: { readonly fireAt: number; readonly id: string },
  to: number,
): Promise<ScheduleAhead[]> {
  return run(db, READ_SCHEDULES, [after.fireAt, after.id, to]);
}

/** Whether a portion was full, so that there may be more. */
export function isFullPortion(schedules: readonly ScheduleAhead[]): boolean {
  return schedules.length === SCHEDULE_PORTION;
}

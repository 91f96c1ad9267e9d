import { type Queryable, run, statement } from './database.js';
import type { OccurrenceRow } from './fire-occurrences.js';

/** What a backfill reads from the ledger and writes to it. */

const READ_RUNS = statement(
  'read-runs',
  `
    SELECT o.at FROM punctual.occurrences o
    WHERE o.schedule = $1::uuid AND o.at >= $2 AND o.at <= $3 AND NOT o.by_hand
      AND (o.job IS NOT NULL OR o.state = 'waiting')`,
);

/** Deletes rows of occurrences that were passed over and overlap the time span. */
const TAKE_PASSED_OVER = statement(
  'take-passed-over',
  `
    DELETE FROM punctual.occurrences o
    WHERE o.schedule = $1::uuid AND o.at <= $3 AND NOT o.by_hand AND o.job IS NULL AND o.state <> 'waiting'
      AND o.at >= coalesce((
        SELECT r.at FROM (
          SELECT p.at, p.until FROM punctual.occurrences p
          WHERE p.schedule = $1::uuid AND p.at < $2 AND NOT p.by_hand ORDER BY p.at DESC LIMIT 1) r
        WHERE r.until >= $2), $2)
    RETURNING o.at, o.until, o.count, o.state, o.reason, o.recorded_at AS "recordedAt"`,
);

/** Not counted in the tally, because these rows were counted when they were first recorded. */
const PUT_BACK = statement(
  'put-back-passed-over',
  `
    INSERT INTO punctual.occurrences (schedule, tenant, at, until, count, state, reason, recorded_at)
    SELECT $1::uuid, $2, u.* FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[],
      $8::bigint[]) u(at, until, count, state, reason, recorded_at)`,
);

/** The moments of the time span that have a job, or wait for one. */
export async function readRuns(
  db: Queryable,
  schedule: string,
  from: number,
  to: number,
): Promise<Set<number>> {
  const rows = await run<{ at: number }>(db, READ_RUNS, [schedule, from, to]);
  return new Set(rows.map((row) => row.at));
}

/** A row of the ledger for consecutive occurrences that were passed over. */
export interface PassedOverRow extends Record<string, unknown> {
  readonly at: number;
  readonly until: number | null;
  readonly count: number;
  readonly state: OccurrenceRow['state'];
  readonly reason: string | null;
  readonly recordedAt: number;
}

/** Deletes the rows of passed-over occurrences that overlap the time span, and answers with them. */
export function takePassedOver(
  db: Queryable,
  schedule: string,
  from: number,
  to: number,
): Promise<PassedOverRow[]> {
  return run(db, TAKE_PASSED_OVER, [schedule, from, to]);
}

/** Inserts what remains of such rows after the backfill. */
export async function putBackPassedOver(
  db: Queryable,
  { id, tenant }: { id: string; tenant: string },
  rows: readonly PassedOverRow[],
): Promise<void> {
  if (rows.length === 0) return;
  await run(db, PUT_BACK, [
    id,
    tenant,
    rows.map((row) => row.at),
    rows.map((row) => row.until),
    rows.map((row) => row.count),
    rows.map((row) => row.state),
    rows.map((row) => row.reason),
    rows.map((row) => row.recordedAt),
  ]);
}

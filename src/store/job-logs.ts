import { uuidTime } from '../core/uuid.js';
import { type Queryable, run, statement } from './database.js';
import { type Portion, type PortionSize, portionOf, readPortion } from './portion.js';

/**
 * Log lines of attempts. The claim is the gate: an attempt that is over can add nothing. It is only looked at,
 * never locked: whoever writes logs must not be able to hold up the leader, which deletes claims. Writers of one log wait
 * for each other instead, or each of them would find the same room left and use it.
 */

const ADD_LINES = statement(
  'add-log-lines',
  `
    WITH claim AS (
      SELECT 1 FROM punctual.claims c JOIN punctual.jobs j ON j.id = c.job
      WHERE c.job = $2::uuid AND c.fence = $3::int AND j.tenant = $1
    ), kept AS MATERIALIZED (
      SELECT punctual.lock_log($2::uuid, $4::bigint) AS bytes FROM claim
    ), sized AS (
      SELECT line, n, kept.bytes + sum(octet_length(line::text)) OVER (ORDER BY n) AS bytes_after
      FROM kept CROSS JOIN unnest($7::json[]) WITH ORDINALITY u(line, n)
    ), added AS (
      INSERT INTO punctual.job_logs (tenant, job, fence, stored_at, line)
      SELECT $1, $2::uuid, $3::int, $6::bigint, line FROM sized WHERE bytes_after <= $5::int ORDER BY n
    )
    SELECT EXISTS (SELECT 1 FROM claim) AS running`,
);

const READ_LINES = statement(
  'read-log-lines',
  portionOf(
    `SELECT seq, fence, line, octet_length(line::text) AS bytes FROM punctual.job_logs
     WHERE job = $2::uuid AND tenant = $1 AND seq > $3 AND stored_at >= $4 ORDER BY seq LIMIT $5::int + 1`,
    'seq',
    { rows: '$5', bytes: '$6' },
  ),
);

export interface LogRow extends Record<string, unknown> {
  readonly seq: number;
  readonly fence: number;
  readonly line: string;
}

/** The clock of a node that stores a line may lie this much behind the one that made the job's id. */
const CLOCK_ERROR_MS = 2 * 86_400_000;

/** Appends the lines (JSON texts) that the job's log has room for; answers whether the attempt is the one that runs. */
export async function addLogLines(
  db: Queryable,
  attempt: { tenant: string; job: string; fence: number },
  lines: readonly string[],
  maxBytes: number,
  now: number,
): Promise<boolean> {
  const { tenant, job, fence } = attempt;
  const from = uuidTime(job) - CLOCK_ERROR_MS;
  const rows = await run<{ running: boolean }>(db, ADD_LINES, [
    tenant,
    job,
    fence,
    from,
    maxBytes,
    now,
    lines,
  ]);
  return rows[0]!.running;
}

/** A portion of the lines after a position, oldest first. */
export function readLogLines(
  db: Queryable,
  tenant: string,
  job: string,
  after: number,
  size: PortionSize,
): Promise<Portion<LogRow>> {
  const from = uuidTime(job) - CLOCK_ERROR_MS;
  return readPortion(db, READ_LINES, [tenant, job, after, from, size.rows, size.bytes]);
}

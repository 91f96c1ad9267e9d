import { uuidTime } from '../core/uuid.js';
import { type Queryable, run, statement } from './database.js';
import { type Portion, type PortionSize, portionOf, readPortion } from './portion.js';

/**
 * Log lines of attempts. Only an attempt that is claimed can add lines. The claim is read and not locked, so that
 * writers of logs cannot block the leader, which deletes claims. Writers of one log lock the log instead; otherwise
 * each of them would see, and use, the same room left.
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

/** A stored line of a log. */
export interface LogRow extends Record<string, unknown> {
  readonly seq: number;
  readonly fence: number;
  readonly line: string;
}

/** How far the clock of a node that stores a line may be behind the one that made the job's id. */
const CLOCK_ERROR_MS = 2 * 86_400_000;

/** Appends those of the lines (JSON texts) that the job's log has room for; answers whether the attempt runs. */
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

/** A portion of the lines after the given sequence number, oldest first. */
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

import { uuidTime } from '../core/uuid.js';
import { type Queryable, run, type Statement } from './database.js';

/**
 * Log lines of attempts. The claim is the gate: an attempt that is over can add nothing. It is only looked at,
 * never locked: whoever writes logs must not be able to hold up the leader, which deletes claims.
 */

const ADD_LINES: Statement = {
  name: 'add-log-lines',
  text: `
    WITH claim AS (
      SELECT 1 FROM punctual.claims c JOIN punctual.jobs j ON j.id = c.job
      WHERE c.job = $2::uuid AND c.fence = $3::int AND j.tenant = $1
    ), kept AS (
      SELECT coalesce(sum(octet_length(line::text)), 0) AS bytes FROM punctual.job_logs
      WHERE job = $2::uuid AND stored_at >= $4::bigint
    ), added AS (
      INSERT INTO punctual.job_logs (tenant, job, fence, stored_at, line)
      SELECT $1, $2::uuid, $3::int, $6::bigint, line
      FROM claim CROSS JOIN kept CROSS JOIN unnest($7::json[]) WITH ORDINALITY u(line, n)
      WHERE kept.bytes < $5::int
      ORDER BY n
    )
    SELECT EXISTS (SELECT 1 FROM claim) AS running`,
};

const READ_LINES: Statement = {
  name: 'read-log-lines',
  text: `
    SELECT seq, fence, line FROM punctual.job_logs
    WHERE job = $2::uuid AND tenant = $1 AND seq > $3 AND stored_at >= $5 ORDER BY seq LIMIT $4`,
};

export interface LogRow extends Record<string, unknown> {
  readonly seq: number;
  readonly fence: number;
  readonly line: string;
}

/** The clock of a node that stores a line may lie this much behind the one that made the job's id. */
const CLOCK_ERROR_MS = 2 * 86_400_000;

/** Appends lines (JSON texts) until the job's log is full; answers whether the attempt is the one that runs. */
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

/** Lines after a position, oldest first. */
export function readLogLines(
  db: Queryable,
  tenant: string,
  job: string,
  after: number,
  limit: number,
): Promise<LogRow[]> {
  return run(db, READ_LINES, [tenant, job, after, limit, uuidTime(job) - CLOCK_ERROR_MS]);
}

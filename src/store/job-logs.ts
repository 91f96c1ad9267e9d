import { type Queryable, run, type Statement } from './database.js';

/** Log lines of attempts. The claim is the gate: an attempt that is over can add nothing. */

const ADD_LINES: Statement = {
  name: 'add-log-lines',
  text: `
    WITH claim AS (
      UPDATE punctual.claims SET log_bytes = log_bytes + $4::int
      WHERE job = $2::uuid AND fence = $3::int AND log_bytes < $5::int RETURNING log_bytes
    )
    INSERT INTO punctual.job_logs (tenant, job, fence, stored_at, line)
    SELECT $1, $2::uuid, $3::int, $6::bigint, line FROM claim CROSS JOIN unnest($7::json[]) WITH ORDINALITY u(line, n)
    ORDER BY n`,
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

/** Appends lines (JSON texts) of a running attempt, until the job's log is full. */
export async function addLogLines(
  db: Queryable,
  attempt: { tenant: string; job: string; fence: number },
  lines: readonly string[],
  maxBytes: number,
  now: number,
): Promise<void> {
  const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
  await run(db, ADD_LINES, [attempt.tenant, attempt.job, attempt.fence, bytes, maxBytes, now, lines]);
}

/** Lines after a position, oldest first. */
export function readLogLines(
  db: Queryable,
  tenant: string,
  job: string,
  after: number,
  limit: number,
  storedAfter: number,
): Promise<LogRow[]> {
  return run(db, READ_LINES, [tenant, job, after, limit, storedAfter]);
}

import { uuidTime } from '../core/uuid.js';
import { type Queryable, run, statement } from './database.js';
import { allEnded } from './ended-places.js';
import {
  ATTEMPT_COUNT,
  HISTORY_ARM,
  LATER_ARM,
  LIVE_ARM,
  NEWEST_ATTEMPTS,
  type PlacedRow,
  SMALL,
  STEP_COLUMNS_OF_JOB,
  STEP_OF_JOB,
  toPlacedRow,
} from './job-places.js';

/** Reading one job, by id or by key. */

/** How wrong the clock may have been that made the id of a job. */
export const CLOCK_ERROR_MS = 2 * 86_400_000;

/** The earliest moment at which the job can have ended, by its id; older partitions of history are not searched. */
export function earliestEnd(id: string): number {
  return uuidTime(id) - CLOCK_ERROR_MS;
}

const READ_JOB = statement(
  'read-job',
  `
    SELECT ${SMALL}, payload, result, error, execution, ${NEWEST_ATTEMPTS} AS earlier_attempts,
      ${ATTEMPT_COUNT} AS earlier_count, ${STEP_COLUMNS_OF_JOB}
    FROM (
      ${LIVE_ARM} WHERE j.tenant = $1 AND j.id = $2::uuid
      UNION ALL ${LATER_ARM} WHERE l.tenant = $1 AND l.id = $2::uuid
      UNION ALL ${HISTORY_ARM} WHERE h.tenant = $1 AND h.id = $2::uuid AND h.finished_at >= $3) p
    ${STEP_OF_JOB}`,
);

const FIND_ENDED = statement(
  'find-ended',
  `
    SELECT h.id FROM unnest($1::text[], $2::uuid[]) AS asked(tenant, id)
    JOIN ${allEnded('h')} ON h.tenant = asked.tenant AND h.id = asked.id AND h.finished_at >= $3
    UNION ALL
    SELECT asked.id FROM unnest($1::text[], $2::uuid[]) AS asked(tenant, id)
    WHERE (SELECT w.tenant = asked.tenant AND w.ended_at IS NOT NULL FROM punctual.workflows w WHERE w.id = asked.id)
      OR (SELECT b.tenant = asked.tenant AND b.ended_at IS NOT NULL FROM punctual.batches b WHERE b.id = asked.id)`,
);

const FIND_KEY = statement(
  'find-key',
  `
    SELECT job AS id FROM punctual.keys WHERE tenant = $1 AND key = $2
    UNION ALL
    (SELECT id FROM punctual.later WHERE tenant = $1 AND key = $2 AND submission IS NOT NULL LIMIT 1)`,
);

/** The job, or null when the tenant has none of that id. */
export async function readJob(db: Queryable, tenant: string, id: string): Promise<PlacedRow | null> {
  const rows = await run<PlacedRow>(db, READ_JOB, [tenant, id, earliestEnd(id)]);
  return rows[0] ? toPlacedRow(tenant, rows[0]) : null;
}

/** Which of these jobs, workflows and batches have ended. */
export async function findEnded(
  db: Queryable,
  jobs: readonly { readonly tenant: string; readonly id: string }[],
): Promise<string[]> {
  const tenants = jobs.map(({ tenant }) => tenant);
  const ids = jobs.map(({ id }) => id);
  const oldest = ids.reduce((least, id) => Math.min(least, uuidTime(id)), Number.POSITIVE_INFINITY);
  const rows = await run<{ id: string }>(db, FIND_ENDED, [tenants, ids, oldest - CLOCK_ERROR_MS]);
  return rows.map(({ id }) => id);
}

/** The id of the job with that key. */
export async function findKey(db: Queryable, tenant: string, key: string): Promise<string | null> {
  const [first, unread] = await run<{ id: string }>(db, FIND_KEY, [tenant, key]);
  // If the history of the first job was removed, its key belongs to the submission that is not parsed yet.
  const isGone = first && unread && (await readJob(db, tenant, first.id)) === null;
  return (isGone ? unread : first)?.id ?? null;
}

import { byIndex } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Requests to cancel jobs that callers made inside their own transactions. */

const READ_CANCEL_REQUESTS = statement(
  'read-cancel-requests',
  `
    SELECT c.id, c.tenant, c.job, c.requested_by AS "requestedBy" FROM punctual.cancel_requests c
    WHERE c.id > $1 ORDER BY c.id LIMIT $2`,
);

const FORGET_CANCEL_REQUESTS = leaderStatement(
  'forget-cancel-requests',
  `answer AS (
    DELETE FROM punctual.cancel_requests c USING unnest($4::bigint[]) u(id)
    WHERE ${byIndex('c.id', 'u.id')} AND ${WHILE_TERM_LASTS}
    RETURNING c.id
  )`,
);

const FIND_CANCELLED = statement(
  'find-cancelled',
  `
    SELECT u.job FROM unnest($1::text[], $2::uuid[]) u(tenant, job)
    WHERE coalesce(
      (SELECT true FROM punctual.cancel_requests c WHERE c.job = u.job AND c.tenant = u.tenant LIMIT 1), false)`,
);

/** A request to cancel a job. */
export interface CancelRequest extends Record<string, unknown> {
  readonly id: number;
  readonly tenant: string;
  readonly job: string;
  readonly requestedBy: string;
}

/** Requests in the order of their ids, after the given one. */
export function readCancelRequests(db: Queryable, after: number, limit: number): Promise<CancelRequest[]> {
  return run(db, READ_CANCEL_REQUESTS, [after, limit]);
}

/** Removes requests that were carried out. */
export async function forgetCancelRequests(
  db: Queryable,
  term: TermKey,
  ids: readonly number[],
): Promise<void> {
  await runAsLeader(db, term, FORGET_CANCEL_REQUESTS, [ids]);
}

/** The ids of those of the jobs that their tenant has asked to cancel. */
export async function findCancelled(
  db: Queryable,
  jobs: readonly { readonly tenant: string; readonly id: string }[],
): Promise<Set<string>> {
  const values = [jobs.map(({ tenant }) => tenant), jobs.map(({ id }) => id)];
  const rows = await run<{ job: string }>(db, FIND_CANCELLED, values);
  return new Set(rows.map(({ job }) => job));
}

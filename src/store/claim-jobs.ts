import { stands } from '../core/test-switches.js';
import { plainArray } from './array-text.js';
import { byIndex } from './by-index.js';
import type { Queryable } from './database.js';
import { SHARED_COLUMNS } from './finish-jobs.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * The claim: a job is running from the moment this commits. The join with `jobs` proves that the job is live
 * and due and that this is its next fence; without it a late hint would start a finished job again, or one
 * that was postponed meanwhile. Only rows that come back may be handed over.
 */

/**
 * The live jobs whose next fence this is; any job by its id when tests have taken this fence out. The sum keeps the
 * planner from looking for all that are due by the index of their order.
 */
const CLAIMABLE = stands('claim-join')
  ? `punctual.jobs j ON ${byIndex('j.id', 'u.id')} AND j.attempts + 1 = u.fence AND j.run_at + 0 <= $7`
  : `(SELECT ${SHARED_COLUMNS} FROM punctual.jobs UNION ALL SELECT ${SHARED_COLUMNS} FROM punctual.job_history) j
    ON ${byIndex('j.id', 'u.id')}`;

const CLAIM_JOBS = leaderStatement(
  'claim-jobs',
  `chosen AS (
    SELECT j.id, u.fence, u.worker, j.tenant, j.task, j.target, j.payload, j.timeout_ms, j.failures, j.losses,
      j.max_attempts, j.max_losses, j.at_most_once, j.backoff, j.run_at, j.late_by
    FROM unnest($4::uuid[], $5::int[], $6::uuid[]) u(id, fence, worker)
    JOIN ${CLAIMABLE}
    WHERE ${WHILE_TERM_LASTS}
  ), claimed AS (
    INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
    SELECT id, fence, worker, $2, $7 FROM chosen
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_assigned, lateness)
    SELECT $7, c.tenant, count(*), (
      SELECT l.lateness::bigint[] FROM unnest($8::text[], $9::text[]) l(tenant, lateness) WHERE l.tenant = c.tenant)
    FROM chosen c GROUP BY c.tenant
  ), answer AS (
    SELECT id, task, target, payload, timeout_ms AS "timeoutMs", failures, losses, max_attempts AS "maxAttempts",
      max_losses AS "maxLosses", at_most_once AS "atMostOnce", backoff, run_at AS "runAt", late_by AS "lateBy"
    FROM chosen
  )`,
);

/** One attempt to be claimed. */
export interface ClaimIntent {
  readonly id: string;
  readonly fence: number;
  readonly worker: string;
}

/** What the claim tells about a job. JSON columns are texts. */
export interface ClaimedRow extends Record<string, unknown> {
  readonly id: string;
  readonly task: string | null;
  readonly target: string | null;
  readonly payload: string;
  readonly timeoutMs: number;
  readonly failures: number;
  readonly losses: number;
  readonly maxAttempts: number;
  readonly maxLosses: number;
  readonly atMostOnce: boolean;
  readonly backoff: string | null;
  readonly runAt: number;
  readonly lateBy: number | null;
}

/** Claims what is still to be had; the answer holds exactly what was claimed. */
export function claimJobs(
  db: Queryable,
  term: TermKey,
  intents: readonly ClaimIntent[],
  now: number,
  latenessByTenant: ReadonlyMap<string, readonly number[]>,
): Promise<ClaimedRow[]> {
  return runAsLeader(db, term, CLAIM_JOBS, [
    plainArray(intents.map((intent) => intent.id)),
    plainArray(intents.map((intent) => intent.fence)),
    plainArray(intents.map((intent) => intent.worker)),
    now,
    [...latenessByTenant.keys()],
    [...latenessByTenant.values()].map((counts) => `{${counts.join(',')}}`),
  ]);
}

import { byIndex } from './by-index.js';
import { inClaimOrder } from './claim-order.js';
import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Claims as a new leader finds them, and what is written to them while a job runs. */

/**
 * Which claims there are, read after the takeover's commit, or the last claims of the old term are missed. The table is
 * read as it lies, for which it takes a second column: its dead rows, of which there are as many as jobs have ended while
 * the xmin horizon is pinned, cost several times as much through the index.
 */
const FIND_CLAIMS = statement('find-claims', 'SELECT job AS id, fence FROM punctual.claims');

/** Without what an assignment carries, which few of them will need again. */
const READ_CLAIMS = statement(
  'read-claims',
  `
    SELECT c.job AS id, c.fence, c.worker, c.epoch, c.claimed_at AS "claimedAt",
      c.cancelled_at AS "cancelledAt", c.progress, j.tenant, j.queue,
      j.needs, j.lane, j.concurrency_key AS "key", j.rank, j.task, j.timeout_ms AS "timeoutMs", j.failures, j.losses,
      j.max_attempts AS "maxAttempts", j.max_losses AS "maxLosses", j.at_most_once AS "atMostOnce", j.backoff,
      j.run_at AS "runAt", j.late_by AS "lateBy", j.start_before AS "startBefore", j.size_kib AS "sizeKib"
    FROM punctual.claims c JOIN punctual.jobs j ON ${byIndex('j.id', 'c.job')}
    WHERE c.job = ANY($1::uuid[])`,
);

const READ_WORK = statement(
  'read-work',
  'SELECT id, payload, target FROM punctual.jobs WHERE id = ANY($1::uuid[])',
);

const SAVE_PROGRESS = leaderStatement(
  'save-progress',
  `answer AS (
    UPDATE punctual.claims c SET progress = u.progress
    FROM unnest($4::uuid[], $5::int[], $6::json[]) u(job, fence, progress)
    WHERE ${byIndex('c.job', 'u.job')} AND c.fence = u.fence AND ${WHILE_TERM_LASTS}
    RETURNING c.job
  )`,
);

const CANCEL_CLAIM = leaderStatement(
  'cancel-claim',
  `answer AS (
    UPDATE punctual.claims c SET cancelled_at = coalesce(c.cancelled_at, $6::bigint)
    WHERE c.job = $4::uuid AND c.fence = $5::int AND ${WHILE_TERM_LASTS}
    RETURNING c.job
  )`,
);

/** Notes that a running job is to be cancelled, for this leader and the next; answers whether it runs. */
export async function cancelClaim(
  db: Queryable,
  term: TermKey,
  claim: { id: string; fence: number },
  now: number,
): Promise<boolean> {
  return (await runAsLeader(db, term, CANCEL_CLAIM, [claim.id, claim.fence, now])).length > 0;
}

/** A claim with what the dispatcher must know of its job. JSON columns are texts. */
export interface StoredClaim extends Record<string, unknown> {
  readonly id: string;
  readonly fence: number;
  readonly worker: string;
  readonly epoch: number;
  readonly claimedAt: number;
  readonly cancelledAt: number | null;
  readonly progress: string | null;
  readonly tenant: string;
  readonly queue: number;
  readonly needs: number;
  readonly lane: number;
  readonly key: string | null;
  readonly rank: number;
  readonly task: string | null;
  readonly timeoutMs: number;
  readonly failures: number;
  readonly losses: number;
  readonly maxAttempts: number;
  readonly maxLosses: number;
  readonly atMostOnce: boolean;
  readonly backoff: string | null;
  readonly runAt: number;
  readonly lateBy: number | null;
  readonly startBefore: number | null;
  readonly sizeKib: number;
}

const CLAIMS_AT_ONCE = 2_000;

/** All claims. Nobody but the leader who reads them makes or ends any, so they can be read in portions. */
export async function readClaims(db: Queryable, atOnce = CLAIMS_AT_ONCE): Promise<StoredClaim[]> {
  const found = await run<{ id: string }>(db, FIND_CLAIMS, []);
  const claims: StoredClaim[] = [];
  for (let from = 0; from < found.length; from += atOnce) {
    const ids = found.slice(from, from + atOnce).map(({ id }) => id);
    for (const claim of await run<StoredClaim>(db, READ_CLAIMS, [ids])) claims.push(claim);
  }
  return claims;
}

/** What an assignment carries, as JSON texts. */
export interface Work {
  readonly payload: string;
  /** Null when the target is the handler that the task names. */
  readonly target: string | null;
}

/** What the attempts of these live jobs work on, by the ids of the jobs. */
export async function readWork(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, Work>> {
  const rows = await run<Work & { readonly id: string } & Record<string, unknown>>(db, READ_WORK, [ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Keeps the newest progress of running attempts. */
export async function saveProgress(
  db: Queryable,
  term: TermKey,
  reports: readonly { id: string; fence: number; progress: string }[],
): Promise<void> {
  const ordered = inClaimOrder(reports);
  await runAsLeader(db, term, SAVE_PROGRESS, [
    ordered.map((report) => report.id),
    ordered.map((report) => report.fence),
    ordered.map((report) => report.progress),
  ]);
}

import { byIndex } from './by-index.js';
import { inClaimOrder } from './claim-order.js';
import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Takes claims back whose attempts never began and never will: their worker said so, or they never left this process.
 * The fence is used up all the same: nothing that was handed out under it can ever count, and what was handed out
 * stays on record as an attempt. It draws on no budget.
 */
const RELEASE_CLAIMS = leaderStatement(
  'release-claims',
  `freed AS (
    DELETE FROM punctual.claims c USING unnest($4::uuid[], $5::int[], $6::json[]) u(job, fence, attempt)
    WHERE ${byIndex('c.job', 'u.job')} AND c.fence = u.fence AND ${WHILE_TERM_LASTS}
    RETURNING c.job, c.fence, u.attempt
  ), answer AS (
    UPDATE punctual.jobs j SET
      attempts = f.fence,
      earlier_attempts = CASE WHEN f.attempt IS NULL THEN j.earlier_attempts
        ELSE array_append(j.earlier_attempts, f.attempt) END
    FROM freed f WHERE ${byIndex('j.id', 'f.job')}
    RETURNING j.id
  )`,
);

/** A claim to be taken back. */
export interface Release {
  readonly id: string;
  readonly fence: number;
  /** The attempt as JSON, appended to the job's earlier attempts; null when nobody was ever handed it. */
  readonly attempt: string | null;
}

/** Answers with the ids of the jobs that wait again. */
export async function releaseClaims(
  db: Queryable,
  term: TermKey,
  claims: readonly Release[],
): Promise<string[]> {
  const ordered = inClaimOrder(claims);
  const rows = await runAsLeader<{ id: string }>(db, term, RELEASE_CLAIMS, [
    ordered.map((claim) => claim.id),
    ordered.map((claim) => claim.fence),
    ordered.map((claim) => claim.attempt),
  ]);
  return rows.map((row) => row.id);
}

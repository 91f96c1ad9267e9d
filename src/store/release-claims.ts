import { byIndex } from './by-index.js';
import { inClaimOrder } from './claim-order.js';
import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Takes claims back whose attempts never began and never will, because their worker said so. The fence is used
 * up all the same: nothing that was handed out under it can ever count.
 */
const RELEASE_CLAIMS = leaderStatement(
  'release-claims',
  `freed AS (
    DELETE FROM punctual.claims c USING unnest($4::uuid[], $5::int[]) u(job, fence)
    WHERE ${byIndex('c.job', 'u.job')} AND c.fence = u.fence AND ${WHILE_TERM_LASTS}
    RETURNING c.job, c.fence
  ), answer AS (
    UPDATE punctual.jobs j SET attempts = f.fence FROM freed f WHERE ${byIndex('j.id', 'f.job')} RETURNING j.id
  )`,
);

/** Answers with the ids of the jobs that wait again. */
export async function releaseClaims(
  db: Queryable,
  term: TermKey,
  claims: readonly { id: string; fence: number }[],
): Promise<string[]> {
  const ordered = inClaimOrder(claims);
  const rows = await runAsLeader<{ id: string }>(db, term, RELEASE_CLAIMS, [
    ordered.map((claim) => claim.id),
    ordered.map((claim) => claim.fence),
  ]);
  return rows.map((row) => row.id);
}

import { byIndex } from './batch-statement.js';
import type { Queryable } from './database.js';
import { takenFromHistory } from './ended-places.js';
import { earliestEndOf } from './find-jobs.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Deletes ended jobs with their keys and logs, in one statement: a key never outlives its job here, and belongs to
 * another job when it was given away meanwhile. Keys are locked in their order, as wherever several are, so that no two
 * statements deadlock. Nothing is added to the log of a job that has ended.
 */
const DELETE_ENDED = leaderStatement(
  'delete-ended-jobs',
  `${takenFromHistory(
    'gone',
    (table) => `DELETE FROM punctual.${table} h USING unnest($5::uuid[]) u(id)
    WHERE h.tenant = $4::text AND h.id = u.id AND h.finished_at >= $6::bigint AND ${WHILE_TERM_LASTS}`,
    null,
    ['id', 'key'],
  )}, theirs AS MATERIALIZED (
    SELECT k.tenant, k.key FROM gone g JOIN punctual.keys k ON k.tenant = $4 AND k.key = g.key AND k.job = g.id
    ORDER BY k.tenant, k.key FOR UPDATE OF k
  ), freed AS (
    DELETE FROM punctual.keys k USING theirs t WHERE k.tenant = t.tenant AND k.key = t.key
  ), forgotten AS (
    DELETE FROM punctual.job_logs l USING gone g
    WHERE ${byIndex('l.job', 'g.id')} AND l.tenant = $4 AND l.stored_at >= $6
  ), answer AS (SELECT id FROM gone)`,
);

/** Deletes ended jobs; answers with the ids of those that were there. */
export async function deleteEndedJobs(
  db: Queryable,
  term: TermKey,
  tenant: string,
  ids: readonly string[],
): Promise<string[]> {
  const values = [tenant, ids, earliestEndOf(ids)];
  return (await runAsLeader<{ id: string }>(db, term, DELETE_ENDED, values)).map(({ id }) => id);
}

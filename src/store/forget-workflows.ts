import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Workflows of one statement: each may have ten thousand steps. */
const AT_ONCE = 5;
/** Jobs of one statement. */
const JOBS_AT_ONCE = 2_000;

/**
 * Deletes workflows that ended before a moment, with their graphs and the jobs that were kept for them; their other jobs
 * have left history with their days. If they have more jobs than one statement deletes, they stay until the last is gone.
 */
const FORGET_WORKFLOWS = leaderStatement(
  'forget-workflows',
  `old AS MATERIALIZED (
    SELECT w.id FROM punctual.workflows w WHERE w.ended_at < $4::bigint AND ${WHILE_TERM_LASTS}
    ORDER BY w.ended_at LIMIT $5::int
  ), jobs AS MATERIALIZED (
    SELECT k.tenant, k.id FROM punctual.job_history_kept k
    WHERE k.workflow = ANY (ARRAY(SELECT id FROM old)) LIMIT $6::int
  ), jobs_gone AS (
    DELETE FROM punctual.job_history_kept k USING jobs j WHERE k.tenant = j.tenant AND k.id = j.id
  ), last AS MATERIALIZED (
    SELECT id FROM old WHERE (SELECT count(*) FROM jobs) < $6::int
  ), gone AS (
    DELETE FROM punctual.workflows w WHERE w.id = ANY (ARRAY(SELECT id FROM last)) RETURNING w.id
  ), steps AS (
    DELETE FROM punctual.steps s WHERE s.workflow = ANY (ARRAY(SELECT id FROM last)) RETURNING s.id
  ), edges AS (
    DELETE FROM punctual.edges e WHERE e.parent = ANY (ARRAY(SELECT id FROM steps))
  ), events AS (
    DELETE FROM punctual.workflow_events e WHERE e.workflow = ANY (ARRAY(SELECT id FROM last))
  ), answer AS (
    SELECT (SELECT count(*) FROM old) = $5::int OR (SELECT count(*) FROM jobs) = $6::int AS more
  )`,
);

/** Deletes some of the workflows that ended before the moment; answers whether there may be more. */
export async function forgetWorkflows(db: Queryable, term: TermKey, before: number): Promise<boolean> {
  const values = [before, AT_ONCE, JOBS_AT_ONCE];
  const [row] = await runAsLeader<{ more: boolean }>(db, term, FORGET_WORKFLOWS, values);
  return row?.more ?? false;
}

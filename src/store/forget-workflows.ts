import type { Queryable } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Workflows of one statement: each may have ten thousand steps. */
const AT_ONCE = 5;

/** Deletes workflows that ended before a moment, with their graphs. Their jobs leave history with their days. */
const FORGET_WORKFLOWS = leaderStatement(
  'forget-workflows',
  `old AS MATERIALIZED (
    SELECT w.id FROM punctual.workflows w WHERE w.ended_at < $4::bigint AND ${WHILE_TERM_LASTS}
    ORDER BY w.ended_at LIMIT $5::int
  ), gone AS (
    DELETE FROM punctual.workflows w WHERE w.id = ANY (ARRAY(SELECT id FROM old)) RETURNING w.id
  ), steps AS (
    DELETE FROM punctual.steps s WHERE s.workflow = ANY (ARRAY(SELECT id FROM old)) RETURNING s.id
  ), edges AS (
    DELETE FROM punctual.edges e WHERE e.parent = ANY (ARRAY(SELECT id FROM steps))
  ), events AS (
    DELETE FROM punctual.workflow_events e WHERE e.workflow = ANY (ARRAY(SELECT id FROM old))
  ), answer AS (SELECT count(*) AS forgotten FROM gone)`,
);

/** Deletes some of the workflows that ended before the moment; answers whether there may be more. */
export async function forgetWorkflows(db: Queryable, term: TermKey, before: number): Promise<boolean> {
  const [row] = await runAsLeader<{ forgotten: number }>(db, term, FORGET_WORKFLOWS, [before, AT_ONCE]);
  return row?.forgotten === AT_ONCE;
}

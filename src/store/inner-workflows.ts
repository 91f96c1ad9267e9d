import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Workflows that are steps of others: what is read when such a step is released, and how the two are tied together. */

const READ_INNER = statement(
  'read-inner-graph',
  `
    SELECT s.inner_graph AS graph, s.inner_workflow AS inner FROM punctual.steps s
    WHERE s.id = $1::uuid AND s.outcome IS NULL AND s.released AND s.wake_at IS NOT NULL`,
);

/** A step that starts a workflow. */
export interface InnerRow extends Record<string, unknown> {
  /** JSON text. */
  readonly graph: string;
  /** The workflow that it has started; null if it is to start one. */
  readonly inner: string | null;
}

/** What a step starts; null if it is not to start anything now. */
export async function readInnerGraph(db: Queryable, step: string): Promise<InnerRow | null> {
  const [row] = await run<InnerRow>(db, READ_INNER, [step]);
  return row ?? null;
}

const TIE_INNER = leaderStatement(
  'tie-inner-workflow',
  `tied AS (
    UPDATE punctual.steps s SET inner_workflow = $5::uuid, wake_at = NULL
    WHERE s.id = $4::uuid AND ${WHILE_TERM_LASTS} RETURNING s.id
  ), answer AS (
    UPDATE punctual.workflows w SET outer_step = $4::uuid, depth = $6::int
    WHERE w.id = $5::uuid AND EXISTS (SELECT 1 FROM tied) RETURNING w.id
  )`,
);

/** Notes which workflow a step has started, and that it waits for nothing else. */
export async function tieInner(
  db: Queryable,
  term: TermKey,
  step: string,
  inner: string,
  depth: number,
): Promise<void> {
  await runAsLeader(db, term, TIE_INNER, [step, inner, depth]);
}

import { byIndex } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Workflows that are steps of others: what is read when such a step is released, and how the two are tied together. */

const READ_INNER = statement(
  'read-inner-graph',
  `
    SELECT s.inner_graph AS graph, s.inner_workflow AS inner, s.released AND s.wake_at IS NOT NULL AS "isDue", s.refers,
      (SELECT l.payload FROM punctual.later l WHERE l.id = s.id) AS payload
    FROM punctual.steps s WHERE s.id = $1::uuid AND s.outcome IS NULL`,
);

/** A step that starts a workflow. */
export interface InnerRow extends Record<string, unknown> {
  /** JSON text. */
  readonly graph: string;
  /** The workflow that it has started; null if it is to start one. */
  readonly inner: string | null;
  /** Whether its input refers to results of other steps. */
  readonly refers: boolean;
  /** Its input as JSON text. */
  readonly payload: string | null;
  /** Whether it is to start it now. */
  readonly isDue: boolean;
}

/** What a step starts; null if it is not to start anything now. */
export async function readInnerGraph(db: Queryable, step: string): Promise<InnerRow | null> {
  const [row] = await run<InnerRow>(db, READ_INNER, [step]);
  return row?.isDue ? row : null;
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

/** The queues and tasks of workflows; null where there are too many. */
export interface Reach {
  readonly queues: readonly string[] | null;
  readonly tasks: readonly string[] | null;
}

const READ_FAMILY = statement(
  'read-workflow-family',
  `
    WITH RECURSIVE up AS (
      SELECT w.id, w.outer_step FROM punctual.workflows w WHERE w.id = $1::uuid
      UNION
      SELECT w.id, w.outer_step FROM up u
      JOIN punctual.steps s ON ${byIndex('s.id', 'u.outer_step')}
      JOIN punctual.workflows w ON ${byIndex('w.id', 's.workflow')}
    ), down AS (
      SELECT u.id FROM up u
      UNION
      SELECT s.inner_workflow FROM down d
      JOIN punctual.steps s ON ${byIndex('s.workflow', 'd.id')} WHERE s.inner_workflow IS NOT NULL
    )
    SELECT d.id FROM down d`,
);

/** The workflow with those around it and all that are inside of these. */
export async function readFamily(db: Queryable, workflow: string): Promise<string[]> {
  return (await run<{ id: string }>(db, READ_FAMILY, [workflow])).map(({ id }) => id).sort();
}

const SHARE_REACH = leaderStatement(
  'share-reach',
  `answer AS (
    UPDATE punctual.workflows w SET queues = $5::text[], tasks = $6::text[]
    WHERE w.id = ANY($4::uuid[]) AND ${WHILE_TERM_LASTS} RETURNING w.id
  )`,
);

/**
 * Notes what workflows that are inside each other run together. All of them have the same reach: whoever steers one of them
 * decides about the steps of the others, too.
 */
export async function shareReach(
  db: Queryable,
  term: TermKey,
  family: readonly string[],
  { queues, tasks }: Reach,
): Promise<void> {
  if (family.length > 0) await runAsLeader(db, term, SHARE_REACH, [family, queues, tasks]);
}

/** Whether the two differ, of which the second has everything that the first has. */
export function hasGrown(before: Reach, after: Reach): boolean {
  return before.queues?.length !== after.queues?.length || before.tasks?.length !== after.tasks?.length;
}

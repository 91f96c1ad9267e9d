import { type Queryable, run, statement } from './database.js';
import {
  auditedStatement,
  leaderStatement,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';
import type { Stopping } from './workflow-portions.js';

/**
 * Stopping workflows: a flag that every portion reads, and then the steps that have not ended, page by page. The same pages
 * do what a hold or a release means.
 */

const CANCEL_WORKFLOW = auditedStatement(
  'cancel-workflow',
  `answer AS (
    UPDATE punctual.workflows w SET stopping = 'cancel', swept = false
    WHERE w.id = $5::uuid AND w.tenant = $4::text AND w.state = 'running' AND ${WHILE_TERM_LASTS}
    RETURNING w.id
  )`,
);

/** Not if it was cancelled, retried, held or released meanwhile. */
const MARK_SWEPT = leaderStatement(
  'mark-swept',
  `answer AS (
    UPDATE punctual.workflows w SET swept = true
    WHERE w.id = $4::uuid AND w.stopping IS NOT DISTINCT FROM $5::text AND w.run = $6::int AND w.held = $7::boolean
      AND ${WHILE_TERM_LASTS}
    RETURNING w.id
  )`,
);

const READ_UNSWEPT = statement(
  'read-unswept',
  `
    SELECT w.id, w.tenant, w.run, w.stopping, w.running, w.held FROM punctual.workflows w
    WHERE NOT w.swept ORDER BY w.id LIMIT $1`,
);

/** Steps that wait or run, in one statement over the places. Those that have ended are in neither. */
const READ_UNENDED = statement(
  'read-unended-steps',
  `
    SELECT s.id, s.inner_workflow AS inner, s.parked, l.id IS NOT NULL AS later, coalesce(l.blocked, false) AS blocked,
      coalesce(l.attempts, j.attempts) AS attempts, c.job IS NOT NULL AS claimed, (l.id IS NULL AND j.id IS NULL) AS gone
    FROM (
      SELECT s.id, s.inner_workflow, s.parked FROM punctual.steps s
      WHERE s.workflow = $1 AND s.id > $2 AND s.outcome IS NULL
      ORDER BY s.id LIMIT $3) s
    LEFT JOIN LATERAL (
      SELECT l.id, l.blocked, l.attempts FROM punctual.later l WHERE l.id = s.id LIMIT 1) l ON true
    LEFT JOIN LATERAL (SELECT j.id, j.attempts FROM punctual.jobs j WHERE j.id = s.id LIMIT 1) j ON true
    LEFT JOIN LATERAL (SELECT c.job FROM punctual.claims c WHERE c.job = s.id LIMIT 1) c ON true
    ORDER BY s.id`,
);

/** Has the rest of a running workflow skipped; answers whether it was running. */
export async function cancelWorkflow(
  db: Queryable,
  term: TermKey,
  tenant: string,
  id: string,
): Promise<boolean> {
  return (await runAsLeader(db, term, CANCEL_WORKFLOW, [tenant, id])).length > 0;
}

/** Notes that what stopping and holding mean was done to all steps; answers whether that is as it was when it was read. */
export async function markSwept(
  db: Queryable,
  term: TermKey,
  { id, stopping, run, held }: Pick<UnsweptWorkflow, 'id' | 'stopping' | 'run' | 'held'>,
): Promise<boolean> {
  return (await runAsLeader(db, term, MARK_SWEPT, [id, stopping, run, held])).length > 0;
}

/** A workflow that stops, is held or was released, and whose steps have not all been told. */
export interface UnsweptWorkflow extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  /** How often it was retried, and one. */
  readonly run: number;
  readonly stopping: Stopping | null;
  readonly running: 'finish' | 'cancel';
  readonly held: boolean;
}

/** Some of these workflows. */
export function readUnswept(db: Queryable, limit: number): Promise<UnsweptWorkflow[]> {
  return run(db, READ_UNSWEPT, [limit]);
}

/** A step that has not ended. */
export interface UnendedStep extends Record<string, unknown> {
  readonly id: string;
  /** The workflow that it has started. */
  readonly inner: string | null;
  /** Whether its job is blocked only because the workflow is on hold. */
  readonly parked: boolean;
  readonly later: boolean;
  readonly blocked: boolean;
  readonly attempts: number | null;
  readonly claimed: boolean;
  /** It has ended, which is not counted yet. */
  readonly gone: boolean;
}

/** Steps of a workflow with ids above the given one that have not ended, as far as it is counted. */
export function readUnended(
  db: Queryable,
  workflow: string,
  after: string,
  limit: number,
): Promise<UnendedStep[]> {
  return run(db, READ_UNENDED, [workflow, after, limit]);
}

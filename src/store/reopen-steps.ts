import type { EndState } from '../core/job.js';
import type { RunIf } from '../core/workflow.js';
import { byIndex } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { allEnded, lockedInHistory, takenFromHistory } from './ended-places.js';
import { insertMoved } from './job-columns.js';
import { auditedStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { WITH_LAST_ATTEMPT } from './place-jobs.js';

/** Running steps of a workflow again: their jobs go from history back to `later`, and their counters begin anew. */

const READ_GRAPH_STEPS = statement(
  'read-graph-steps',
  `
    SELECT s.id, s.name, s.run_if AS "runIf", s.outcome, s.finished_at AS "finishedAt", s.released, s.wait, s.refers,
      s.added_by AS "addedBy", s.inner_graph IS NOT NULL AS inner, h.id IS NOT NULL AS "hasHistory", coalesce(h.at_most_once AND h.attempts > 0, false) AS "ranOnce"
    FROM punctual.steps s
    LEFT JOIN LATERAL (
      SELECT h.id, h.at_most_once, h.attempts FROM ${allEnded('h')}
      WHERE h.tenant = s.tenant AND h.id = s.id AND h.finished_at = s.finished_at LIMIT 1) h ON true
    WHERE s.workflow = $1::uuid ORDER BY s.place`,
);

/** A step as it is looked at before steps run again. */
export interface GraphStepRow extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly runIf: RunIf;
  readonly outcome: EndState | null;
  readonly finishedAt: number | null;
  readonly released: boolean;
  /** JSON text. */
  readonly wait: string | null;
  readonly refers: boolean;
  /** Whether it starts a workflow. */
  readonly inner: boolean;
  /** The step that added it; null if it was submitted with the workflow. */
  readonly addedBy: string | null;
  /** Whether its job is still in history. */
  readonly hasHistory: boolean;
  /** Whether it is at-most-once and was claimed. */
  readonly ranOnce: boolean;
}

/** The steps of a workflow. */
export function readGraphSteps(db: Queryable, workflow: string): Promise<GraphStepRow[]> {
  return run(db, READ_GRAPH_STEPS, [workflow]);
}

/** A step that waits or runs again, or whose parents do. */
export interface ReopenedStep {
  readonly id: string;
  /** When its job ended; null if it has not. */
  readonly finishedAt: number | null;
  readonly parents: number;
  readonly parentsLeft: number;
  readonly ok: number;
  readonly bad: number;
  readonly released: boolean;
  /** Whether its job may not be admitted yet. */
  readonly blocked: boolean;
  readonly wakeAt: number | null;
  /** Whether its job is blocked only because the workflow is on hold. */
  readonly parked: boolean;
}

/** What is written about a workflow whose steps run again. */
export interface Reopening {
  readonly workflow: string;
  readonly tenant: string;
  readonly steps: readonly ReopenedStep[];
  readonly stepsLeft: number;
  readonly failed: number;
  /** Whether steps start their workflows anew, instead of having what failed in them run again. */
  readonly anew: boolean;
  /** Whether it is on hold from now on; if it was not before, it is so with the workflow around it. */
  readonly held: boolean;
  /** Steps that leave the workflow, because those that added them run again; their jobs stay in history. */
  readonly removed: readonly string[];
}

/** All of the jobs are still in history: somebody may have deleted one. */
const IF_OWN = 'EXISTS (SELECT 1 FROM own)';

const REOPEN_STEPS = auditedStatement(
  'reopen-steps',
  `${lockedInHistory(
    (table) => `SELECT h.id FROM unnest($6::uuid[], $7::bigint[]) u(id, finished_at)
    JOIN punctual.${table} h ON h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at
    WHERE ${WHILE_TERM_LASTS} FOR UPDATE OF h`,
  )}, own AS MATERIALIZED (
    SELECT 1 AS yes WHERE (SELECT count(*) FROM locked) = cardinality($6::uuid[]) AND ${WHILE_TERM_LASTS}
  ), ${takenFromHistory(
    'gone',
    (table) => `DELETE FROM punctual.${table} h
    USING unnest($6::uuid[], $7::bigint[], $8::boolean[]) u(id, finished_at, blocked)
    WHERE h.tenant = $5::text AND h.id = u.id AND h.finished_at = u.finished_at AND ${IF_OWN}`,
    'u.blocked AS is_blocked',
  )}, moved AS (
    ${insertMoved({
      from: 'job_history',
      to: 'later',
      rows: 'gone',
      set: {
        run_at: '$9::bigint',
        failures: '0',
        losses: '0',
        start_before: 'NULL',
        payload: 'coalesce((SELECT s.template FROM punctual.steps s WHERE s.id = m.id), m.payload)',
        earlier_attempts: WITH_LAST_ATTEMPT,
        size_kib: '(octet_length(m.payload::text) + coalesce(octet_length(m.target::text), 0)) >> 10',
        admit_at: 'CASE WHEN m.is_blocked THEN 4503599627370496 ELSE $9::bigint END',
        blocked: 'm.is_blocked',
      },
    })}
    RETURNING id
  ), changed AS (
    UPDATE punctual.steps s SET parents = u.parents, parents_left = u.parents_left, ok = u.ok, bad = u.bad,
      released = u.released, wake_at = u.wake_at, parked = u.parked, outcome = NULL, finished_at = NULL,
      inner_workflow = CASE WHEN $20::boolean THEN NULL ELSE s.inner_workflow END
    FROM unnest($10::uuid[], $11::int[], $12::int[], $13::int[], $14::boolean[], $15::bigint[], $21::boolean[],
      $19::int[]) u(id, parents_left, ok, bad, released, wake_at, parked, parents)
    WHERE ${byIndex('s.id', 'u.id')} AND ${IF_OWN}
  ), removed AS (
    DELETE FROM punctual.steps s WHERE s.id = ANY($18::uuid[]) AND ${IF_OWN}
  ), cut_below AS (
    DELETE FROM punctual.edges e WHERE e.parent = ANY($18::uuid[]) AND ${IF_OWN}
  ), cut_above AS (
    DELETE FROM punctual.edges e WHERE e.child = ANY($18::uuid[]) AND ${IF_OWN}
  ), again AS (
    UPDATE punctual.workflows w SET state = 'running', run = w.run + 1, steps = w.steps - cardinality($18::uuid[]),
      steps_left = $16::int, failed = $17::int, stopping = NULL, ended_at = NULL,
      held = $22::boolean, held_with_outer = CASE WHEN w.held THEN w.held_with_outer ELSE $22::boolean END,
      edges = CASE WHEN cardinality($18::uuid[]) = 0 THEN w.edges END
    WHERE w.id = $4::uuid AND ${IF_OWN}
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_retried, workflows_retried)
    SELECT $9::bigint, $5::text, count(*),
      (SELECT (w.ended_at IS NOT NULL)::int FROM punctual.workflows w WHERE w.id = $4::uuid)
    FROM moved HAVING count(*) > 0
  ), answer AS (SELECT (SELECT count(*) FROM moved) AS moved FROM own)`,
);

/** Lets steps run again; answers false, with nothing done, if a job of theirs is no longer in history. */
export async function reopenSteps(
  db: Queryable,
  term: TermKey,
  { workflow, tenant, steps, stepsLeft, failed, anew, held, removed }: Reopening,
  now: number,
): Promise<boolean> {
  const ended = steps.filter(({ finishedAt }) => finishedAt !== null);
  const done = await runAsLeader(db, term, REOPEN_STEPS, [
    ...[workflow, tenant],
    ended.map(({ id }) => id),
    ended.map(({ finishedAt }) => finishedAt),
    ended.map(({ blocked }) => blocked),
    now,
    steps.map(({ id }) => id),
    steps.map(({ parentsLeft }) => parentsLeft),
    steps.map(({ ok }) => ok),
    steps.map(({ bad }) => bad),
    steps.map(({ released }) => released),
    steps.map(({ wakeAt }) => wakeAt),
    ...[stepsLeft, failed, removed],
    steps.map(({ parents }) => parents),
    anew,
    steps.map(({ parked }) => parked),
    held,
  ]);
  return done.length > 0;
}

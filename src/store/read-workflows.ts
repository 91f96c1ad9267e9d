import type { EndState, JobState } from '../core/job.js';
import type { FailurePolicy, RunIf, RunningPolicy, WorkflowState } from '../core/workflow.js';
import { assertTenant } from './assert-tenant.js';
import { byIndex } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import type { Stopping } from './workflow-portions.js';

/** Reading workflows, their steps and edges. */

const COLUMNS = `w.id, w.tenant, w.name, w.key, w.state, w.run, w.steps, w.steps_left, w.failed, w.on_failure, w.running,
      w.stopping, w.held, w.rerun_of, w.queues, w.tasks, w.created_at, w.created_by, w.ended_at, w.definition,
      w.definition_version, w.schedule, w.occurrence`;

const READ_WORKFLOW = statement(
  'read-workflow',
  `SELECT ${COLUMNS} FROM punctual.workflows w WHERE w.tenant = $1 AND w.id = $2::uuid`,
);

const LIST_WORKFLOWS = statement(
  'list-workflows',
  `
    SELECT ${COLUMNS} FROM punctual.workflows w
    WHERE w.tenant = $1 AND w.id < $2::uuid AND ($4::text[] IS NULL OR w.state = ANY ($4::text[]))
      AND ($5::text IS NULL OR w.name = $5::text) AND ($6::text IS NULL OR w.key = $6::text)
      AND ($7::text IS NULL OR w.definition = $7::text) AND ($8::text IS NULL OR w.schedule = $8::text)
    ORDER BY w.id DESC LIMIT $3`,
);

/** A workflow as it is stored. */
export interface WorkflowRow extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly key: string | null;
  readonly state: WorkflowState;
  readonly run: number;
  readonly steps: number;
  readonly steps_left: number;
  readonly failed: number;
  readonly on_failure: FailurePolicy;
  readonly running: RunningPolicy;
  readonly stopping: Stopping | null;
  readonly held: boolean;
  readonly rerun_of: string | null;
  readonly queues: readonly string[] | null;
  readonly tasks: readonly string[] | null;
  readonly created_at: number;
  readonly created_by: string;
  readonly ended_at: number | null;
  readonly definition: string | null;
  readonly definition_version: number | null;
  readonly schedule: string | null;
  readonly occurrence: number | null;
}

/** The workflow, or null when the tenant has none of that id. */
export async function readWorkflow(db: Queryable, tenant: string, id: string): Promise<WorkflowRow | null> {
  const [row] = await run<WorkflowRow>(db, READ_WORKFLOW, [tenant, id]);
  if (row) assertTenant(tenant, row);
  return row ?? null;
}

/** Which workflows to list. */
export interface WorkflowFilter {
  readonly states?: readonly WorkflowState[] | undefined;
  readonly name?: string | undefined;
  readonly key?: string | undefined;
  readonly definition?: string | undefined;
  readonly schedule?: string | undefined;
}

/** Workflows with ids below the given one, newest first. */
export function listWorkflows(
  db: Queryable,
  tenant: string,
  below: string,
  limit: number,
  { states, name, key, definition, schedule }: WorkflowFilter = {},
): Promise<WorkflowRow[]> {
  return run(db, LIST_WORKFLOWS, [
    ...[tenant, below, limit, states ?? null, name ?? null, key ?? null],
    ...[definition ?? null, schedule ?? null],
  ]);
}

/** Steps with the states of their jobs, in one statement over all places. */
const STEPS = `s.id, s.name, s.place, s.run_if, s.parents, s.parents_left, s.outcome, s.finished_at, s.added_by,
      CASE WHEN s.outcome IS NOT NULL THEN s.outcome
        WHEN l.id IS NOT NULL THEN CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END
        WHEN c.job IS NOT NULL THEN 'running' WHEN j.id IS NOT NULL THEN 'pending'
        ELSE (SELECT o.state FROM punctual.outbox o WHERE o.job = s.id) END AS state`;
const STEP_PLACES = `punctual.steps s
    LEFT JOIN LATERAL (
      SELECT l.id, l.blocked FROM punctual.later l WHERE s.outcome IS NULL AND l.id = s.id LIMIT 1) l ON true
    LEFT JOIN LATERAL (SELECT j.id FROM punctual.jobs j WHERE s.outcome IS NULL AND j.id = s.id LIMIT 1) j ON true
    LEFT JOIN LATERAL (SELECT c.job FROM punctual.claims c WHERE s.outcome IS NULL AND c.job = s.id LIMIT 1) c ON true`;

const READ_STEPS = statement(
  'read-steps',
  `
    SELECT ${STEPS} FROM ${STEP_PLACES}
    WHERE s.workflow = $1 AND s.tenant = $2 ORDER BY s.place`,
);

const READ_STEPS_NAMED = statement(
  'read-steps-named',
  `
    SELECT ${STEPS},
      ARRAY(SELECT p.name FROM punctual.edges e JOIN punctual.steps p ON ${byIndex('p.id', 'e.parent')}
        WHERE e.child = s.id ORDER BY p.place) AS after,
      (SELECT a.name FROM punctual.steps a WHERE a.id = s.added_by) AS adder
    FROM ${STEP_PLACES}
    WHERE s.workflow = $1 AND s.tenant = $2 AND s.name = ANY($3::text[]) ORDER BY s.place`,
);

/** A step as it is shown. */
export interface StepRow extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly place: number;
  readonly run_if: RunIf;
  readonly parents: number;
  readonly parents_left: number;
  readonly outcome: EndState | null;
  readonly finished_at: number | null;
  readonly state: JobState;
  /** The job that added it; null if it was submitted with the workflow. */
  readonly added_by: string | null;
}

/** A step with the names of those around it. */
export interface NamedStepRow extends StepRow {
  readonly after: readonly string[];
  /** The step that added it. */
  readonly adder: string | null;
}

/** Some steps of a workflow, in their order. */
export function readStepsNamed(
  db: Queryable,
  tenant: string,
  workflow: string,
  names: readonly string[],
): Promise<NamedStepRow[]> {
  return run(db, READ_STEPS_NAMED, [workflow, tenant, names]);
}

/** The steps of a workflow: those that it was submitted with, every one behind its parents, then those that were added. */
export function readSteps(db: Queryable, tenant: string, workflow: string): Promise<StepRow[]> {
  return run(db, READ_STEPS, [workflow, tenant]);
}

const READ_GRAPH = statement(
  'read-graph',
  `
    SELECT e.parent, e.child FROM punctual.steps s JOIN punctual.edges e ON ${byIndex('e.child', 's.id')}
    WHERE s.workflow = $1 AND s.tenant = $2`,
);

/** An edge of a graph. */
export interface EdgeRow extends Record<string, unknown> {
  readonly parent: string;
  readonly child: string;
}

/** The edges of a workflow. */
export function readGraph(db: Queryable, tenant: string, workflow: string): Promise<EdgeRow[]> {
  return run(db, READ_GRAPH, [workflow, tenant]);
}

const READ_STEP_IDS = statement(
  'read-step-ids',
  'SELECT s.id FROM punctual.steps s WHERE s.workflow = $1::uuid AND s.tenant = $2',
);

/** The ids of the steps of a workflow. */
export async function readStepIds(db: Queryable, tenant: string, workflow: string): Promise<string[]> {
  const rows = await run<{ id: string }>(db, READ_STEP_IDS, [workflow, tenant]);
  return rows.map(({ id }) => id);
}

/** The most steps of which one job shows that it depends on them, in each way. */
const MOST_RELATED = 1_000;

const READ_RELATIVES = statement(
  'read-relatives',
  `
    WITH RECURSIVE up AS (
      SELECT e.parent AS id FROM punctual.edges e WHERE e.child = $1::uuid
      UNION
      SELECT e.parent FROM up u JOIN punctual.edges e ON ${byIndex('e.child', 'u.id')}
    )
    SELECT
      ARRAY(SELECT e.parent FROM punctual.edges e WHERE e.child = $1::uuid ORDER BY 1 LIMIT ${MOST_RELATED}) AS "dependsOn",
      ARRAY(SELECT e.child FROM punctual.edges e WHERE e.parent = $1::uuid ORDER BY 1 LIMIT ${MOST_RELATED}) AS dependents,
      ARRAY(SELECT u.id FROM up u LIMIT ${MOST_RELATED}) AS ancestors`,
);

/** What a job depends on, and what depends on it, as ids. */
export interface Relatives extends Record<string, unknown> {
  readonly dependsOn: readonly string[];
  readonly dependents: readonly string[];
  readonly ancestors: readonly string[];
}

/** The steps around a step; at most a thousand of each kind. */
export async function readRelatives(db: Queryable, step: string): Promise<Relatives> {
  const [row] = await run<Relatives>(db, READ_RELATIVES, [step]);
  return row!;
}

const READ_PARENTS = statement(
  'read-parents',
  `
    SELECT s.name, s.outcome IS NOT NULL OR (SELECT true FROM punctual.outbox o WHERE o.job = s.id) IS NOT NULL AS "hasEnded"
    FROM punctual.edges e JOIN punctual.steps s ON ${byIndex('s.id', 'e.parent')}
    WHERE e.child = $1::uuid ORDER BY s.place`,
);

/** A step that another one waits for. */
interface ParentRow extends Record<string, unknown> {
  readonly name: string;
  readonly hasEnded: boolean;
}

/** The steps that a step waits for. */
export function readParents(db: Queryable, step: string): Promise<ParentRow[]> {
  return run(db, READ_PARENTS, [step]);
}

const READ_STEP_HOLD = statement(
  'read-step-hold',
  `
    SELECT s.parked, w.held FROM punctual.steps s JOIN punctual.workflows w ON ${byIndex('w.id', 's.workflow')}
    WHERE s.id = $1::uuid`,
);

/** How a step stands with the hold of its workflow. */
export interface StepHold extends Record<string, unknown> {
  /** Whether its job is blocked because of that. */
  readonly parked: boolean;
  /** Whether the workflow is on hold. */
  readonly held: boolean;
}

/** Whether the hold of its workflow concerns a step. */
export async function readStepHold(db: Queryable, step: string): Promise<StepHold> {
  const [row] = await run<StepHold>(db, READ_STEP_HOLD, [step]);
  return row ?? { parked: false, held: false };
}

const READ_WAIT = statement(
  'read-wait',
  'SELECT s.wait, s.wake_at AS "wakeAt" FROM punctual.steps s WHERE s.id = $1::uuid AND s.released AND s.wait IS NOT NULL',
);

/** What a step waits for besides other steps. */
export interface WaitRow extends Record<string, unknown> {
  /** JSON text. */
  readonly wait: string;
  readonly wakeAt: number | null;
}

/** What a step waits for whose parents have ended; null if it waits for nothing. */
export async function readWait(db: Queryable, step: string): Promise<WaitRow | null> {
  const [row] = await run<WaitRow>(db, READ_WAIT, [step]);
  return row ?? null;
}

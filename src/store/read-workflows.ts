import { type JobState, RELATIVE_LISTS, type RelativeList } from '../core/job.js';
import type { FailurePolicy, RunIf, RunningPolicy, WorkflowState } from '../core/workflow.js';
import { assertTenant } from './assert-tenant.js';
import { byIndex } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { childrenOf, parentsOf } from './edges.js';
import { STEP_WAIT_COLUMNS, type StepWaitRow } from './job-places.js';
import type { Stopping } from './workflow-portions.js';

/** Reading workflows, their steps and edges. */

const COLUMNS = `w.id, w.tenant, w.name, w.key, w.state, w.run, w.steps, w.steps_left, w.failed, w.on_failure, w.running,
      w.stopping, w.held, w.held_with_outer, w.rerun_of, w.queues, w.tasks, w.created_at, w.created_by, w.ended_at, w.definition,
      w.definition_version, w.schedule, w.occurrence, w.depth, w.outer_step,
      (SELECT o.workflow FROM punctual.steps o WHERE o.id = w.outer_step) AS outer_workflow`;

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
  /** Whether it is on hold only because the workflow around it is. */
  readonly held_with_outer: boolean;
  readonly rerun_of: string | null;
  readonly queues: readonly string[] | null;
  readonly tasks: readonly string[] | null;
  readonly created_at: number;
  readonly created_by: string;
  readonly ended_at: number | null;
  /** How many workflows are around it. */
  readonly depth: number;
  /** The step of another workflow that it is, and that workflow. */
  readonly outer_step: string | null;
  readonly outer_workflow: string | null;
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
const STEPS = `s.id, s.name, s.place, s.run_if, s.added_by, s.inner_workflow, coalesce(s.finished_at, o.finished_at) AS finished_at,
      CASE WHEN s.outcome IS NOT NULL THEN s.outcome
        WHEN l.id IS NOT NULL THEN CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END
        WHEN c.job IS NOT NULL THEN 'running' WHEN j.id IS NOT NULL THEN 'pending'
        ELSE o.state END AS state,${STEP_WAIT_COLUMNS}`;
const PLACES_OF_STEPS = `
    LEFT JOIN LATERAL (
      SELECT l.id, l.blocked FROM punctual.later l WHERE s.outcome IS NULL AND l.id = s.id LIMIT 1) l ON true
    LEFT JOIN LATERAL (SELECT j.id FROM punctual.jobs j WHERE s.outcome IS NULL AND j.id = s.id LIMIT 1) j ON true
    LEFT JOIN LATERAL (SELECT c.job FROM punctual.claims c WHERE s.outcome IS NULL AND c.job = s.id LIMIT 1) c ON true
    LEFT JOIN LATERAL (
      SELECT o.state, o.finished_at FROM punctual.outbox o WHERE s.outcome IS NULL AND o.job = s.id LIMIT 1) o ON true`;

/** The ids of parents come as one text, which the driver reads far faster than an array. */
const READ_STEPS = statement(
  'read-steps',
  `
    SELECT ${STEPS},
      concat_ws(',', array_to_string(s.parent_ids, ','),
        (SELECT string_agg(e.parent::text, ',') FROM punctual.edges e WHERE e.child = s.id)) AS parents
    FROM (
      SELECT s.* FROM punctual.steps s WHERE s.workflow = $1 AND s.tenant = $2 AND s.id > $3::uuid
      ORDER BY s.id LIMIT $4) s${PLACES_OF_STEPS}
    ORDER BY s.id`,
);

const READ_STEPS_NAMED = statement(
  'read-steps-named',
  `
    SELECT ${STEPS},
      ARRAY(SELECT p.name FROM (${parentsOf('s.id')}) e JOIN punctual.steps p ON ${byIndex('p.id', 'e.id')}
        ORDER BY p.place) AS after,
      (SELECT a.name FROM punctual.steps a WHERE a.id = s.added_by) AS adder
    FROM punctual.steps s${PLACES_OF_STEPS}
    WHERE s.workflow = $1 AND s.tenant = $2 AND s.name = ANY($3::text[]) ORDER BY s.place`,
);

/** A step as it is shown. */
export interface StepRow extends StepWaitRow, Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly place: number;
  readonly run_if: RunIf;
  readonly finished_at: number | null;
  readonly state: JobState;
  /** The job that added it; null if it was submitted with the workflow. */
  readonly added_by: string | null;
  /** The workflow that it has started. */
  readonly inner_workflow: string | null;
}

/** A step of a whole workflow. */
export interface PlacedStepRow extends StepRow {
  /** The ids of its parents, with commas between them. */
  readonly parents: string;
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

/** Steps of a workflow with ids above the given one. */
export function readSteps(
  db: Queryable,
  tenant: string,
  workflow: string,
  after: string,
  limit: number,
): Promise<PlacedStepRow[]> {
  return run(db, READ_STEPS, [workflow, tenant, after, limit]);
}

const READ_GRAPH = statement(
  'read-graph',
  `
    SELECT e.id AS parent, c.id AS child FROM punctual.steps c CROSS JOIN LATERAL (${parentsOf('c.id')}) e
    WHERE c.workflow = $1 AND c.tenant = $2`,
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

/** The most steps that each list around a step holds. */
const MOST_RELATED = 1_000;

const list = (select: string) => `ARRAY(${select} LIMIT ${MOST_RELATED + 1})`;

/**
 * The recursions yield the nearest steps first, and run only as far as the lists reach. They find a step once, however many
 * ways lead to it.
 */
const READ_RELATIVES = statement(
  'read-relatives',
  `
    WITH RECURSIVE up AS (
      SELECT p.id FROM (${parentsOf('$1::uuid')}) p
      UNION
      SELECT p.id FROM up u CROSS JOIN LATERAL (${parentsOf('u.id')}) p
    ), down AS (
      SELECT c.id FROM (${childrenOf('$1::uuid')}) c
      UNION
      SELECT c.id FROM down d CROSS JOIN LATERAL (${childrenOf('d.id')}) c
    )
    SELECT
      ${list(`SELECT p.id FROM (${parentsOf('$1::uuid')}) p ORDER BY 1`)} AS "dependsOn",
      ${list(`SELECT c.id FROM (${childrenOf('$1::uuid')}) c ORDER BY 1`)} AS dependents,
      ${list('SELECT u.id FROM up u')} AS ancestors,
      ${list('SELECT d.id FROM down d')} AS descendants`,
);

/** What a job depends on, and what depends on it, as ids. */
export interface Relatives extends Readonly<Record<RelativeList, readonly string[]>> {
  /** The lists that hold only the nearest steps, because there are more. */
  readonly cut: readonly RelativeList[];
}

/** The steps around a step; at most a thousand of each kind. */
export async function readRelatives(db: Queryable, step: string): Promise<Relatives> {
  const [row] = await run<Partial<Record<RelativeList, string[]>>>(db, READ_RELATIVES, [step]);
  const { dependsOn = [], dependents = [], ancestors = [], descendants = [] } = row ?? {};
  const lists = { dependsOn, dependents, ancestors, descendants };
  const cut = RELATIVE_LISTS.filter((name) => lists[name].length > MOST_RELATED);
  for (const name of cut) lists[name].length = MOST_RELATED;
  return { ...lists, cut };
}

const READ_PARENTS = statement(
  'read-parents',
  `
    SELECT s.name, s.outcome IS NOT NULL OR (SELECT true FROM punctual.outbox o WHERE o.job = s.id) IS NOT NULL AS "hasEnded"
    FROM (${parentsOf('$1::uuid')}) p JOIN punctual.steps s ON ${byIndex('s.id', 'p.id')} ORDER BY s.place`,
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
  `
    SELECT s.wait, s.wake_at AS "wakeAt", s.inner_workflow AS inner FROM punctual.steps s
    WHERE s.id = $1::uuid AND s.released AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL)`,
);

/** What a step waits for besides other steps. */
export interface WaitRow extends Record<string, unknown> {
  /** JSON text; null if it starts a workflow. */
  readonly wait: string | null;
  readonly wakeAt: number | null;
  /** The workflow that it has started. */
  readonly inner: string | null;
}

/** What a step waits for whose parents have ended; null if it waits for nothing. */
export async function readWait(db: Queryable, step: string): Promise<WaitRow | null> {
  const [row] = await run<WaitRow>(db, READ_WAIT, [step]);
  return row ?? null;
}

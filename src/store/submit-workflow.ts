import { type FailurePolicy, type RunIf, type RunningPolicy, WORKFLOW_DEFAULTS } from '../core/workflow.js';
import { binaryArray } from './array-bytes.js';
import { Columns, parametersOf } from './columns.js';
import { inTransaction, isMissingReference, type Pool, type Queryable, run, statement } from './database.js';
import { edgeLists, type PlacedEdges } from './edges.js';
import type { Keep } from './idempotency.js';
import { column } from './job-columns.js';
import { type JobRow, NEW_JOB_COLUMNS, NEW_LATER_COLUMNS } from './job-row.js';
import { namesHold, namesTaken, StaleNamesError } from './names.js';
import { type Made, mustStillBeFound, takeRoomFor, tookTooLong, VISIBLE_WITHIN_MS } from './submit-jobs.js';
import { noDefinition } from './workflow-definitions.js';

/**
 * Storing a workflow: its row, its steps with their edges, and their jobs, all or nothing, in one statement. With several, the
 * jobs of its roots could become visible later than the look-back reaches.
 */

/** A step to be stored. */
export interface NewStep {
  /** Its job. */
  readonly row: JobRow;
  readonly name: string;
  readonly runIf: RunIf;
  readonly parents: number;
  readonly delayMs: number;
  /** JSON of what it waits for, if it runs no job. */
  readonly wait: string | null;
  /** JSON of the workflow that it starts, if it runs no job. */
  readonly inner: string | null;
  /** How many steps that has, with those of the workflows inside it. */
  readonly innerSteps: number;
  /** When it has waited long enough, if it has no parents and waits for a time, or starts a workflow. */
  readonly wakeAt: number | null;
  /** Whether its payload refers to results of other steps. */
  readonly refers: boolean;
  /** Whether it is submitted on hold. */
  readonly held: boolean;
  /** When its job is admitted; null if it is stored in the live table. */
  readonly admitAt: number | null;
  /** Whether it waits for parents, an event, a time or an artifact, and so is not admitted whatever `admitAt` says. */
  readonly blocked: boolean;
}

/** A version of a definition. */
export interface UsedDefinition {
  readonly name: string;
  readonly version: number;
}

/** The schedule that makes a run; a run by hand has no occurrence. */
export interface Scheduled {
  readonly schedule: string;
  readonly occurrence: number | null;
}

/** A workflow to be stored; `edges` are pairs of indexes into its steps, parent and child. */
export interface NewWorkflow {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly key: string | null;
  /** The workflow that it repeats. */
  readonly rerunOf: string | null;
  /** The version of a definition that it is started from. */
  readonly definition: UsedDefinition | null;
  /** The schedule that starts it. */
  readonly scheduled: Scheduled | null;
  readonly onFailure: FailurePolicy;
  readonly running: RunningPolicy;
  /** The queues and tasks of its steps; null if there are too many. */
  readonly queues: readonly string[] | null;
  readonly tasks: readonly string[] | null;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly steps: readonly PlacedStep[];
  readonly edges: PlacedEdges;
}

/** A step with its number in the order of its workflow. */
export interface PlacedStep extends NewStep {
  readonly place: number;
  /** Set for a step that is added when some of its parents have ended. */
  readonly parentsLeft?: number;
  readonly released?: boolean;
}

/** When a blocked job is admitted: never, also to those who do not know what blocked means. */
export const NEVER = 2 ** 52;

/** The definition of a step's job says all about it but for its id and payload: steps share one only if they wait alike. */
const definitionOf = ({ row }: NewStep): object => row.definition;

/** The columns of the job of a step that is not live; exported for steps that are added later. */
export const LATER_COLUMNS = new Columns<NewStep>([
  ...NEW_LATER_COLUMNS.inside((step: NewStep) => step.row),
  column('admit_at', (step) => step.admitAt, definitionOf),
  column('held', (step) => step.held, definitionOf),
  column('blocked', (step) => step.blocked, definitionOf),
]);

/** What steps without anything special have in common. */
const PLAIN = {};

/** The same object for all steps that run a job once all before them have succeeded, and say nothing else. */
function kindOf(step: PlacedStep): object {
  const { runIf, delayMs, wait, inner, wakeAt, refers, held } = step;
  const isPlain = wait === null && inner === null && wakeAt === null && !refers && !held;
  return isPlain && delayMs === 0 && runIf === WORKFLOW_DEFAULTS.runIf ? PLAIN : step;
}

/** The columns of a step that begins to wait; those of plain ones are sent once for all of them. */
const NEW_STEP_COLUMNS = new Columns<PlacedStep>([
  column('id', (step) => step.row.id),
  { name: 'name', type: 'text', of: (step) => step.name },
  { name: 'place', type: 'int', of: (step) => step.place },
  { name: 'parents', type: 'int', of: (step) => step.parents },
  { name: 'run_if', type: 'text', of: (step) => step.runIf, part: kindOf },
  { name: 'delay_ms', type: 'bigint', of: (step) => step.delayMs, part: kindOf },
  { name: 'wait', type: 'json', of: (step) => step.wait, part: kindOf },
  { name: 'inner_graph', type: 'json', of: (step) => step.inner, part: kindOf },
  { name: 'inner_steps', type: 'int', of: (step) => step.innerSteps, part: kindOf },
  { name: 'wake_at', type: 'bigint', of: (step) => step.wakeAt, part: kindOf },
  { name: 'refers', type: 'boolean', of: (step) => step.refers, part: kindOf },
  { name: 'hold', type: 'boolean', of: (step) => step.held, part: kindOf },
  { name: 'template', type: 'json', of: (step) => (step.refers ? step.row.payload : null), part: kindOf },
]);

/** The columns of a step that is added later, when some of its parents may have ended. */
export const STEP_COLUMNS = new Columns<PlacedStep>([
  ...NEW_STEP_COLUMNS.inside((step: PlacedStep) => step),
  { name: 'parents_left', type: 'int', of: (step) => step.parentsLeft ?? step.parents },
  { name: 'released', type: 'boolean', of: (step) => step.released ?? step.parents === 0 },
]);

const IF_MADE = 'EXISTS (SELECT 1 FROM made)';

/** The parameters: $1 to $9 as for jobs, $10 to $25 the workflow, then its live jobs, the others, steps and edges (their lists, bounds and number). */
function insertInto(
  liveColumns: Columns<JobRow>,
  laterColumns: Columns<NewStep>,
  stepColumns: Columns<PlacedStep>,
): string {
  const live = liveColumns.inSql(26);
  const later = laterColumns.inSql(live.next);
  const steps = stepColumns.inSql(later.next);
  const parents = steps.of('parents');
  // Elements and slices of arrays without nulls are found without reading what is before them.
  const bound = (number: number) => `($${steps.next + 1}::int[])[4 * ${steps.of('place')} + ${number}]`;
  const list = (from: number) =>
    `nullif(($${steps.next}::uuid[])[${bound(from)}:${bound(from + 1)}], '{}'::uuid[])`;
  return `
    WITH valid AS MATERIALIZED (
      SELECT ${namesHold(4)} AS named,
        floor(extract(epoch FROM clock_timestamp()) * 1000) <= $9::bigint + ${VISIBLE_WITHIN_MS / 2} AS young
    ), made AS (
      INSERT INTO punctual.workflows
        (id, tenant, name, key, on_failure, running, created_at, created_by, steps, steps_left, queues, tasks,
        definition, definition_version, schedule, occurrence, rerun_of, edges, last_place)
      SELECT $10::uuid, $11::text, $12::text, $13::text, $14::text, $15::text, $16::bigint, $17::text, $18::int, $18::int,
        $19::text[], $20::text[], $21::text, $22::int, $23::text, $24::bigint, $25::uuid, $${steps.next + 2}::int,
        $18::int - 1
      WHERE (SELECT named AND young FROM valid)
      ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
      RETURNING id
    ), live AS (
      INSERT INTO punctual.jobs (${liveColumns.names}, workflow, schedule, occurrence)
      SELECT ${live.all}, $10::uuid, $23::text, $24::bigint FROM ${live.source} WHERE ${IF_MADE}
    ), later AS (
      INSERT INTO punctual.later (${laterColumns.names}, workflow, schedule, occurrence)
      SELECT ${later.all}, $10::uuid, $23::text, $24::bigint FROM ${later.source} WHERE ${IF_MADE}
    ), steps AS (
      INSERT INTO punctual.steps
        (${stepColumns.names}, parents_left, released, workflow, tenant, parent_ids, child_ids)
      SELECT ${steps.all}, ${parents}, ${parents} = 0, $10::uuid, $11::text, ${list(1)}, ${list(3)}
      FROM ${steps.source} WHERE ${IF_MADE}
    ), counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_submitted, workflows_submitted)
      SELECT $1::bigint, c.tenant, c.jobs, 1 FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs) WHERE ${IF_MADE}
    )
    SELECT named, young, ${IF_MADE} AS made FROM valid`;
}

/** For a workflow of plain steps whose live jobs share their definition, and the others theirs, as in a wide graph. */
const ALIKE_LIVE = NEW_JOB_COLUMNS.shared();
const ALIKE_LATER = LATER_COLUMNS.shared();
const ALIKE_STEPS = NEW_STEP_COLUMNS.shared();
const INSERT_WORKFLOW = statement('insert-workflow', insertInto(ALIKE_LIVE, ALIKE_LATER, ALIKE_STEPS));

const INSERT_VARIED = statement(
  'insert-varied-workflow',
  insertInto(NEW_JOB_COLUMNS, LATER_COLUMNS, NEW_STEP_COLUMNS),
);

/** Finds the workflow that has a key. */
const FIND_WORKFLOW_KEY = statement(
  'find-workflow-key',
  'SELECT id FROM punctual.workflows WHERE tenant = $1 AND key = $2',
);

/** The id of the workflow with that key. */
export async function findWorkflowKey(db: Queryable, tenant: string, key: string): Promise<string | null> {
  const rows = await run<{ id: string }>(db, FIND_WORKFLOW_KEY, [tenant, key]);
  return rows[0]?.id ?? null;
}

/** What became of a submission. */
export interface SubmittedWorkflow {
  readonly id: string;
  /** False if another workflow has the key. */
  readonly isNew: boolean;
}

/** Stores a workflow, or finds the one that has its key; null if that is gone by now. */
export async function submitWorkflow(
  pool: Pool,
  workflow: NewWorkflow,
  made: Made,
  now: number,
  keep?: Keep<SubmittedWorkflow>,
): Promise<SubmittedWorkflow | null> {
  const store = async (db: Queryable): Promise<SubmittedWorkflow | null> => {
    if (await insertWorkflow(db, workflow, made, now)) return { id: workflow.id, isNew: true };
    // A second statement, because only that sees what was committed while the first one waited.
    const id = await findWorkflowKey(db, workflow.tenant, workflow.key!);
    return id === null ? null : { id, isNew: false };
  };
  if (!keep && made.counted === undefined) return store(pool);
  return inTransaction(pool, async (db) => {
    const isTaken =
      workflow.key !== null && (await findWorkflowKey(db, workflow.tenant, workflow.key)) !== null;
    if (!isTaken) await takeRoomFor(db, workflow.steps, made);
    const stored = await store(db);
    if (stored?.isNew) {
      await keep?.(db, stored);
      mustStillBeFound(made);
    }
    return stored;
  });
}

/** The lists of edges, and how many edges there are. */
function edgeParameters({ steps, edges }: NewWorkflow): [Buffer, Buffer, number] {
  const ids = steps.map(({ row }) => row.id);
  const { places, bounds } = edgeLists(ids, edges);
  const listed = places.map((place) => ids[place]!);
  return [binaryArray('uuid', listed), binaryArray('int', bounds), edges.parents.length];
}

function isLive({ admitAt }: NewStep): boolean {
  return admitAt === null;
}

/** Whether rows, if there are any, share their definition. */
function areAlike<Row>(columns: Columns<Row>, rows: readonly Row[]): boolean {
  return rows.length === 0 || columns.isPartShared(rows);
}

/** Stores a workflow; answers false if another one has its key. Throws if its names or its definition are gone. */
export async function insertWorkflow(
  db: Queryable,
  workflow: NewWorkflow,
  made: Made,
  now: number,
): Promise<boolean> {
  const { id, tenant, name, key, onFailure, running, createdAt, createdBy, steps } = workflow;
  const { queues, tasks, rerunOf, definition, scheduled } = workflow;
  const live = steps.filter(isLive).map(({ row }) => row);
  const later = steps.filter((step) => !isLive(step));
  const isAlike =
    areAlike(NEW_JOB_COLUMNS, live) && areAlike(LATER_COLUMNS, later) && areAlike(NEW_STEP_COLUMNS, steps);
  const insert = isAlike ? INSERT_WORKFLOW : INSERT_VARIED;
  const storing = run<{ named: boolean; young: boolean; made: boolean }>(db, insert, [
    ...[now, [tenant], [steps.length], ...namesTaken(made.names), made.at],
    ...[id, tenant, name, key, onFailure, running, createdAt, createdBy, steps.length, queues, tasks],
    ...[definition?.name ?? null, definition?.version ?? null],
    ...[scheduled?.schedule ?? null, scheduled?.occurrence ?? null],
    rerunOf,
    ...(await parametersOf(isAlike ? ALIKE_LIVE : NEW_JOB_COLUMNS, live)),
    ...(await parametersOf(isAlike ? ALIKE_LATER : LATER_COLUMNS, later)),
    ...(await parametersOf(isAlike ? ALIKE_STEPS : NEW_STEP_COLUMNS, steps)),
    ...edgeParameters(workflow),
  ]);
  const [valid] = await storing.catch((error: unknown) => {
    throw definition && isMissingReference(error) ? noDefinition(definition.name, definition.version) : error;
  });
  if (!valid!.named) throw new StaleNamesError();
  if (!valid!.young) throw tookTooLong();
  return valid!.made;
}

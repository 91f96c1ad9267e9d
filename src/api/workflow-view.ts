import type { JobState } from '../core/job.js';
import { addAll } from '../core/long-lists.js';
import { TimeSlice } from '../core/time-slice.js';
import { FIRST_UUID, uuidTime } from '../core/uuid.js';
import {
  criticalPath as findPath,
  longestSteps,
  readyAt,
  type TimedStep,
} from '../core/workflow/critical-path.js';
import { eventOf, type Waits } from '../core/workflow/waiting.js';
import type {
  AddedSteps,
  CriticalPath,
  ListedWorkflow,
  RunIf,
  StepAttempt,
  StepWait,
  WorkflowStepView,
} from '../core/workflow.js';
import type { Queryable } from '../store/database.js';
import {
  type NamedStepRow,
  type PlacedStepRow,
  readSteps,
  type StepRow,
  type WorkflowRow,
} from '../store/read-workflows.js';
import { type AttemptTimes, readStepAttempts } from '../store/step-attempts.js';
import type { NewStep, NewWorkflow } from '../store/submit-workflow.js';
import { waitsFor } from './job-view.js';
import { JsonText } from './json-text.js';

/** Steps that one statement reads. */
const PORTION = 1_000;
/** Steps whose attempts one statement reads; each is looked up in history. */
const ATTEMPTS_PORTION = 500;
/** Steps that are worked on before the time slice is checked again. */
const LOOK_EVERY = 100;
/** The most steps of the critical path that are shown. */
const MOST_OF_PATH = 1_000;

/** A workflow as the API shows it. */
export class WorkflowText extends JsonText {
  constructor(readonly text: string) {
    super();
  }

  /** The same with more fields. */
  with(more: object): WorkflowText {
    return new WorkflowText(`${this.text.slice(0, -1)},${JSON.stringify(more).slice(1)}`);
  }
}

/** A step as it is shown; every step is behind its parents. */
interface ShownStep extends TimedStep {
  readonly id: string;
  readonly name: string;
  readonly state: JobState;
  readonly runIf: RunIf;
  /** The step that added it. */
  readonly addedBy: string | null;
  /** The workflow that it has started. */
  readonly workflow: string | null;
  /** What it waits for besides steps. */
  readonly waitsFor: StepWait | null;
}

/** What is large about steps, and shown where it is asked for. */
export interface StepParts {
  readonly attempts: boolean;
}

/** Reads the steps of a workflow and writes it. Both go in portions, so that ten thousand steps hold up nobody. */
export async function viewOfStored(
  db: Queryable,
  row: WorkflowRow,
  now: number,
  { attempts }: StepParts = { attempts: false },
): Promise<WorkflowText> {
  const steps = await readShown(db, row);
  const path = await pathOf(db, row, steps, now);
  return write(listedWorkflow(row), steps, path, attempts ? await timesOf(db, row, steps, now) : undefined);
}

/** What a step says about its attempts. */
type StepTimes = Required<Pick<WorkflowStepView, 'readyAt' | 'attempts'>>;

/** Since when steps could run, and when they did, in the order of the steps. */
async function timesOf(
  db: Queryable,
  { tenant, created_at }: WorkflowRow,
  steps: readonly ShownStep[],
  now: number,
): Promise<StepTimes[]> {
  const ready = steps.map(({ finishedAt }, i) => readyAt(steps, i, created_at, finishedAt ?? now));
  const times: StepTimes[] = [];
  const slice = new TimeSlice();
  for (let from = 0; from < steps.length; from += ATTEMPTS_PORTION) {
    const portion = steps.slice(from, from + ATTEMPTS_PORTION);
    const asked = portion.map(({ id, finishedAt }, i) => ({
      id,
      finishedAt,
      from: ready[from + i] ?? created_at,
    }));
    const found = await readStepAttempts(db, tenant, asked);
    if (slice.isOver) await slice.next();
    for (const [i, step] of portion.entries()) {
      const attempts =
        step.workflow === null ? found.get(step.id)?.attempts : [attemptOfInner(step, step.workflow)];
      times.push({ readyAt: maybeTime(ready[from + i]!), attempts: (attempts ?? []).map(shownAttempt) });
    }
  }
  return times;
}

/** A workflow runs from when it is stored, which is when its id was made. */
function attemptOfInner({ state, finishedAt }: ShownStep, workflow: string): AttemptTimes {
  const outcome = state === 'succeeded' || state === 'failed' || state === 'cancelled' ? state : null;
  return { fence: 1, startedAt: uuidTime(workflow), finishedAt, outcome };
}

function shownAttempt({ fence, startedAt, finishedAt, outcome }: AttemptTimes): StepAttempt {
  return { fence, startedAt: time(startedAt), finishedAt: maybeTime(finishedAt), outcome };
}

/** A new workflow is as it was stored, whatever has become of it since. */
export function viewOfNew(workflow: NewWorkflow): Promise<WorkflowText> {
  const { id, tenant, name, key, onFailure, running, edges, createdAt, createdBy, rerunOf } = workflow;
  const { definition, scheduled } = workflow;
  const parents = workflow.steps.map((): number[] => []);
  for (const [i, parent] of edges.parents.entries()) parents[edges.children[i]!]!.push(parent);
  const steps = workflow.steps.map((step, i): ShownStep => {
    const { name: stepName, row, blocked, runIf } = step;
    const state = blocked ? 'blocked' : 'pending';
    const [after, waits] = [parents[i]!.sort(inOrder), waitsOfNew(step)];
    // biome-ignore format: one line.
    return { id: row.id, name: stepName, state, runIf, addedBy: null, workflow: null, waitsFor: waits, parents: after, finishedAt: null };
  });
  const listed: ListedWorkflow = {
    ...{ id, tenant, name, key, definition, schedule: scheduled?.schedule ?? null },
    scheduledAt: maybeTime(scheduled?.occurrence ?? null),
    ...{ state: 'running', run: 1, onFailure, running, stopping: null },
    ...{ held: false, rerunOf, parent: null },
    progress: { steps: steps.length, ended: 0, failed: 0 },
    createdAt: time(createdAt),
    createdBy,
    endedAt: null,
  };
  const first = { name: steps[0]!.name, state: steps[0]!.state, waitedMs: 0, ranMs: 0, totalMs: 0 };
  return write(listed, steps, { totalMs: 0, waitedMs: 0, ranMs: 0, steps: [first], left: 0 });
}

/** What a new step that nothing is before waits for. */
function waitsOfNew({ parents, wait, inner, wakeAt }: NewStep): StepWait | null {
  if (parents > 0 || (wait === null && inner === null)) return null;
  if (wait === null) return { event: null, until: null, workflow: null };
  return { event: eventOf(JSON.parse(wait) as Waits), until: maybeTime(wakeAt), workflow: null };
}

async function readShown(db: Queryable, { tenant, id }: WorkflowRow): Promise<ShownStep[]> {
  const rows: PlacedStepRow[] = [];
  for (let after = FIRST_UUID; ; ) {
    const page = await readSteps(db, tenant, id, after, PORTION);
    addAll(rows, page);
    if (page.length < PORTION) break;
    after = page.at(-1)!.id;
  }
  rows.sort((a, b) => a.place - b.place);
  const indexes = new Map(rows.map((row, i) => [row.id, i]));
  const slice = new TimeSlice();
  const steps: ShownStep[] = [];
  for (const [i, row] of rows.entries()) {
    if (i % LOOK_EVERY === 0 && slice.isOver) await slice.next();
    const { name, state, run_if: runIf, finished_at: finishedAt } = row;
    const parents =
      row.parents === '' ? [] : row.parents.split(',').flatMap((each) => indexes.get(each) ?? []);
    const adder = row.added_by === null ? undefined : indexes.get(row.added_by);
    const addedBy = adder === undefined ? null : rows[adder]!.name;
    steps.push({
      ...{ id: row.id, name, state, runIf, addedBy, workflow: row.inner_workflow, finishedAt },
      ...{ waitsFor: waitOf(row), parents: parents.sort(inOrder) },
      // Its id was made when it was added.
      added: adder === undefined ? undefined : { by: adder, at: uuidTime(row.id) },
    });
  }
  return steps;
}

/** What a step waits for besides steps; its end may not be counted yet. */
function waitOf(row: StepRow): StepWait | null {
  return row.state === 'blocked' ? waitsFor(row, row.inner_workflow) : null;
}

function inOrder(a: number, b: number): number {
  return a - b;
}

/** The critical path with what its steps spent waiting and running, as the jobs tell it. */
async function pathOf(
  db: Queryable,
  { tenant, created_at }: WorkflowRow,
  all: readonly ShownStep[],
  now: number,
): Promise<CriticalPath> {
  const path = findPath(all, created_at, now);
  const { steps, left } = longestSteps(path, MOST_OF_PATH);
  const asked = steps.map(({ index, from }) => ({ ...all[index]!, from }));
  const attempts = await readStepAttempts(db, tenant, asked);
  const shown = steps.map(({ index, from, until }) => {
    const { id, name, state, workflow } = all[index]!;
    // A workflow runs from when it is stored, which is when its id was made.
    const startedAt =
      workflow === null ? (attempts.get(id)?.startedAt ?? until) : Math.max(from, uuidTime(workflow));
    // A worker's clock may be a little ahead of or behind the database's.
    const waitedMs = Math.max(0, Math.min(startedAt, until) - from);
    return { name, state, waitedMs, ranMs: until - from - waitedMs, totalMs: until - from };
  });
  return {
    totalMs: (path.at(-1)?.until ?? created_at) - created_at,
    waitedMs: shown.reduce((sum, { waitedMs }) => sum + waitedMs, 0),
    ranMs: shown.reduce((sum, { ranMs }) => sum + ranMs, 0),
    ...{ steps: shown, left },
  };
}

async function write(
  listed: ListedWorkflow,
  steps: readonly ShownStep[],
  criticalPath: CriticalPath,
  times?: readonly StepTimes[],
): Promise<WorkflowText> {
  const slice = new TimeSlice();
  const names = steps.map(({ name }) => JSON.stringify(name));
  const texts: string[] = [];
  for (const [i, step] of steps.entries()) {
    if (i % LOOK_EVERY === 0 && slice.isOver) await slice.next();
    texts.push(`${names[i]}:${textOf(step, names, times?.[i])}`);
  }
  const head = JSON.stringify({ ...listed, criticalPath }).slice(0, -1);
  return new WorkflowText(`${head},"jobs":{${texts.join(',')}}}`);
}

/** The JSON of a `WorkflowStepView`, put together by hand: a workflow may have thousands. */
function textOf(step: ShownStep, names: readonly string[], times: StepTimes | undefined): string {
  const { id, state, runIf, addedBy, workflow, waitsFor: waits, finishedAt } = step;
  const after = step.parents.map((parent) => names[parent]).join(',');
  const end = finishedAt === null ? null : `"${time(finishedAt)}"`;
  const started = workflow === null ? null : `"${workflow}"`;
  const more = times === undefined ? '' : `,${JSON.stringify(times).slice(1, -1)}`;
  return `{"id":"${id}","state":"${state}","runIf":"${runIf}","addedBy":${JSON.stringify(addedBy)},"workflow":${started},"waitsFor":${JSON.stringify(waits)},"after":[${after}],"finishedAt":${end}${more}}`;
}

/** Steps that were added to a workflow. */
export function addedSteps(workflow: string, steps: readonly NamedStepRow[]): AddedSteps {
  const jobs = steps.map((row) => {
    const { id, name, state, after, run_if: runIf, adder: addedBy, inner_workflow: workflow } = row;
    const step: WorkflowStepView = {
      ...{ id, state, after, runIf, addedBy, workflow, waitsFor: waitOf(row) },
      finishedAt: maybeTime(row.finished_at),
    };
    return [name, step] as const;
  });
  return { workflow, jobs: Object.fromEntries(jobs) };
}

/** A workflow without its steps. */
export function listedWorkflow(row: WorkflowRow): ListedWorkflow {
  const { id, tenant, name, key, state, run, stopping, held, steps, steps_left, failed } = row;
  return {
    ...{ id, tenant, name, key, definition: usedDefinition(row.definition, row.definition_version) },
    ...{ schedule: row.schedule, scheduledAt: maybeTime(row.occurrence) },
    ...{ state, run, onFailure: row.on_failure, running: row.running, stopping },
    ...{ held, rerunOf: row.rerun_of },
    progress: { steps, ended: steps - steps_left, failed },
    parent:
      row.outer_workflow && row.outer_step ? { workflow: row.outer_workflow, job: row.outer_step } : null,
    createdAt: time(row.created_at),
    createdBy: row.created_by,
    endedAt: maybeTime(row.ended_at),
  };
}

function usedDefinition(name: string | null, version: number | null): ListedWorkflow['definition'] {
  return name === null || version === null ? null : { name, version };
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}

function maybeTime(ms: number | null): string | null {
  return ms === null ? null : time(ms);
}

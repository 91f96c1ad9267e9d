import { admissionTime } from '../core/admission-time.js';
import { TimeSlice } from '../core/time-slice.js';
import { uuidv7 } from '../core/uuid.js';
import type { ParsedStep, ParsedWorkflow } from '../core/workflow/parse-workflow.js';
import { wakeAt } from '../core/workflow/waiting.js';
import { awaitsArtifact, type JobRow, type StoredDefinition, toStored } from './job-row.js';
import type { Resolved } from './names.js';
import { NEVER, type NewWorkflow, type PlacedStep } from './submit-workflow.js';

/** More queues or tasks than this are not kept: no restricted key reaches so many. */
const MOST_NAMES = 100;
/** Steps that are made before the time slice is checked again. */
const LOOK_EVERY = 100;

/** Whose a workflow is. */
export interface WorkflowOwner {
  readonly tenant: string;
  readonly createdBy: string;
  readonly traceparent?: string | null | undefined;
}

/** Where a workflow comes from, if it was not submitted with all its steps. */
export interface WorkflowOrigin {
  readonly definition?: NewWorkflow['definition'];
  readonly scheduled?: NewWorkflow['scheduled'];
  /** Ids that were decided before: of the workflow, and of the job by which it is judged whether it started in time. */
  readonly ids?: { readonly workflow: string; readonly first: string };
  /** When its first steps are due, if not when they were read. */
  readonly dueAt?: number;
}

/** The step by whose start it is judged whether a workflow started in time: the first that runs a job at once, if any does. */
export function firstStep(steps: readonly Pick<ParsedStep, 'parents' | 'wait' | 'inner'>[]): number {
  return Math.max(
    0,
    steps.findIndex(({ parents, wait, inner }) => parents.length === 0 && wait === null && inner === null),
  );
}

/** A workflow as it is stored, with new ids; `resolved` are the names of its steps. */
export async function newWorkflow(
  owner: WorkflowOwner,
  { name, key, rerunOf, onFailure, running, steps }: ParsedWorkflow,
  resolved: readonly Resolved[],
  now: number,
  laterThreshold: number,
  { definition = null, scheduled = null, ids: given, dueAt }: WorkflowOrigin = {},
): Promise<NewWorkflow> {
  const { tenant, createdBy } = owner;
  const workflow = given?.workflow ?? uuidv7(now);
  const slice = new TimeSlice();
  const made: PlacedStep[] = [];
  const edges = { parents: [] as number[], children: [] as number[] };
  const first = given ? firstStep(steps) : -1;
  for (const [i, step] of steps.entries()) {
    if (i % LOOK_EVERY === 0 && slice.isOver) await slice.next();
    const id = i === first ? given!.first : uuidv7(now);
    const times = { now, laterThreshold, dueAt };
    const ids = { id, workflow, schedule: scheduled?.schedule };
    made.push(newStep(ids, step, owner, resolved[i]!, times, made.at(-1), steps[i - 1]));
    for (const parent of step.parents) {
      edges.parents.push(parent);
      edges.children.push(i);
    }
  }
  return {
    ...{ id: workflow, tenant, name, key, rerunOf: rerunOf ?? null, definition, scheduled },
    ...{ onFailure, running, createdAt: now, createdBy },
    ...reachWith({ queues: [], tasks: [] }, steps),
    ...{ steps: made, edges },
  };
}

/** When a step is made, and when it is due. */
interface Times {
  readonly now: number;
  readonly laterThreshold: number;
  /** When steps that wait for nothing are due, if not when they were read. */
  readonly dueAt: number | undefined;
}

function newStep(
  ids: Pick<JobRow, 'id' | 'workflow' | 'schedule'>,
  step: ParsedStep,
  owner: WorkflowOwner,
  resolved: Resolved,
  times: Times,
  before: PlacedStep | undefined,
  like: ParsedStep | undefined,
): PlacedStep {
  const { parents, wait, inner } = step;
  const blocked = parents.length > 0 || wait !== null || inner !== null;
  // The steps of a wide graph mostly share their definition, which then is converted and sent once.
  const isAlike = like?.definition === step.definition && before?.blocked === blocked;
  const definition = isAlike ? before.row.definition : storedOf(step, blocked, owner, resolved, times.dueAt);
  const { id, workflow, schedule } = ids;
  const row = { id, payload: step.payload, definition, schedule, workflow };
  const made = stepOf(step, row, blocked, times, before ? before.place + 1 : 0);
  made.parents = parents.length;
  if (parents.length === 0) made.wakeAt = wakeOf(wait, inner !== null, times.now);
  return made;
}

/** When a step that waits for no others is looked at, if it runs no job. */
function wakeOf(wait: ParsedStep['wait'], hasInner: boolean, now: number): number | null {
  return wait !== null ? wakeAt(wait, now) : hasInner ? now : null;
}

/** When the job of a step is due; the delay of a blocked one counts from its release. */
function dueTime(
  { definition, delayMs }: Pick<ParsedStep, 'definition' | 'delayMs'>,
  blocked: boolean,
  dueAt: number | undefined,
): number {
  if (blocked) return definition.at;
  return dueAt === undefined ? definition.runAt : dueAt + delayMs;
}

/** The definition of a step's job as it is stored. */
export function storedOf(
  step: Pick<ParsedStep, 'definition' | 'delayMs'>,
  blocked: boolean,
  { tenant, createdBy, traceparent }: WorkflowOwner,
  { queue, needs }: Resolved,
  dueAt?: number,
): StoredDefinition {
  const { definition } = step;
  const origin = { queue, needs, tenant, createdAt: definition.at, createdBy, traceparent };
  return toStored({ ...definition, runAt: dueTime(step, blocked, dueAt) }, origin);
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A step as it is stored, but for what it waits for. Written out, because there may be thousands, and a spread costs more. */
export function stepOf(
  step: Omit<ParsedStep, 'parents'>,
  row: JobRow,
  blocked: boolean,
  { now, laterThreshold, dueAt }: Times,
  place = 0,
): Mutable<PlacedStep> {
  const { name, runIf, delayMs, wait, inner, refers, definition } = step;
  const runAt = dueTime(step, blocked, dueAt);
  const waits = blocked || awaitsArtifact(row);
  return {
    row,
    name,
    place,
    runIf,
    parents: 0,
    delayMs,
    wait: wait === null ? null : JSON.stringify(wait),
    inner: inner?.text ?? null,
    innerSteps: inner?.steps.length ?? 0,
    wakeAt: null,
    refers,
    held: definition.hold,
    admitAt: waits ? NEVER : definition.hold ? runAt : admissionTime(runAt, now, laterThreshold),
    blocked: waits,
  };
}

/** The steps, and those of the workflows that they start. */
export function withInner<S extends Pick<ParsedStep, 'wait' | 'inner' | 'definition'>>(
  steps: readonly S[],
): readonly (S | ParsedStep)[] {
  return steps.every(({ inner }) => inner === null)
    ? steps
    : steps.flatMap((step) => [step, ...(step.inner?.steps ?? [])]);
}

/** The queues and tasks of a workflow and of the steps that are added to it; null where there are too many. */
export function reachWith(
  { queues, tasks }: Pick<NewWorkflow, 'queues' | 'tasks'>,
  steps: readonly Pick<ParsedStep, 'wait' | 'inner' | 'definition'>[],
): Pick<NewWorkflow, 'queues' | 'tasks'> {
  const runs = withInner(steps).filter(({ wait, inner }) => wait === null && inner === null);
  return {
    queues: queues && distinctNames([...queues, ...runs.map(({ definition }) => definition.queue)]),
    tasks: tasks && distinctNames([...tasks, ...runs.map(({ definition }) => definition.task ?? '')]),
  };
}

/** The names, each once; null if there are more than are kept. */
export function distinctNames(names: readonly string[]): string[] | null {
  const distinct = [...new Set(names)];
  return distinct.length > MOST_NAMES ? null : distinct;
}

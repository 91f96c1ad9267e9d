import { admissionTime } from '../core/admission-time.js';
import type { JobDefinition } from '../core/submission.js';
import { TimeSlice } from '../core/time-slice.js';
import { uuidv7 } from '../core/uuid.js';
import type { ParsedAddition, ParsedStep, ParsedWorkflow } from '../core/workflow/parse-workflow.js';
import { wakeAt } from '../core/workflow/waiting.js';
import type { Draft } from './add-steps.js';
import { type JobRow, type StoredDefinition, toStored } from './job-row.js';
import type { Resolved } from './names.js';
import { NEVER, type NewStep, type NewWorkflow } from './submit-workflow.js';

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

/** A workflow as it is stored, with new ids; `resolved` are the names of its steps. */
export async function newWorkflow(
  owner: WorkflowOwner,
  { name, key, onFailure, running, steps }: ParsedWorkflow,
  resolved: readonly Resolved[],
  now: number,
  laterThreshold: number,
): Promise<NewWorkflow> {
  const { tenant, createdBy } = owner;
  const id = uuidv7(now);
  const slice = new TimeSlice();
  const made: NewStep[] = [];
  const edges = { parents: [] as number[], children: [] as number[] };
  for (const [i, step] of steps.entries()) {
    if (i % LOOK_EVERY === 0 && slice.isOver) await slice.next();
    made.push(newStep(step, id, owner, resolved[i]!, now, laterThreshold, made.at(-1), steps[i - 1]));
    for (const parent of step.parents) {
      edges.parents.push(parent);
      edges.children.push(i);
    }
  }
  return {
    ...{ id, tenant, name, key, onFailure, running, createdAt: now, createdBy },
    ...reachWith({ queues: [], tasks: [] }, steps),
    ...{ steps: made, edges },
  };
}

function newStep(
  step: ParsedStep,
  workflow: string,
  owner: WorkflowOwner,
  resolved: Resolved,
  now: number,
  laterThreshold: number,
  before: NewStep | undefined,
  like: ParsedStep | undefined,
): NewStep {
  const { parents, wait, inner } = step;
  const blocked = parents.length > 0 || wait !== null || inner !== null;
  // The steps of a wide graph mostly share their definition, which then is converted and sent once.
  const isAlike = like?.definition === step.definition && before?.blocked === blocked;
  const stored = isAlike ? before.row.definition : storedOf(step, blocked, owner, resolved);
  return {
    ...stepOf(step, { id: uuidv7(now), workflow, definition: stored }, blocked, now, laterThreshold),
    parents: parents.length,
    wakeAt: parents.length > 0 ? null : wait !== null ? wakeAt(wait, now) : inner !== null ? now : null,
  };
}

/** The delay of a blocked step counts from its release. */
function storedOf(
  { definition }: Pick<ParsedStep, 'definition'>,
  blocked: boolean,
  { tenant, createdBy, traceparent }: WorkflowOwner,
  { queue, needs }: Resolved,
): StoredDefinition {
  const origin = { queue, needs, tenant, createdAt: definition.at, createdBy, traceparent };
  return toStored(blocked ? { ...definition, runAt: definition.at } : definition, origin);
}

function stepOf(
  step: Omit<ParsedStep, 'parents'>,
  row: Omit<JobRow, 'payload'>,
  blocked: boolean,
  now: number,
  laterThreshold: number,
): Omit<NewStep, 'parents' | 'wakeAt'> {
  const { name, runIf, delayMs, wait, inner, refers, payload } = step;
  const { hold, runAt } = step.definition;
  return {
    row: { ...row, payload },
    ...{ name, runIf, delayMs: blocked ? delayMs : 0, refers, held: hold, blocked },
    wait: wait === null ? null : JSON.stringify(wait),
    inner: inner?.text ?? null,
    admitAt: blocked ? NEVER : hold ? runAt : admissionTime(runAt, now, laterThreshold),
  };
}

/** Steps that are to be added to a workflow, with new ids; what they wait for is known when they are added. */
export function draftSteps<S extends ParsedAddition>(
  workflow: string,
  steps: readonly S[],
  owner: WorkflowOwner,
  resolved: readonly Resolved[],
  now: number,
  laterThreshold: number,
): (S & Draft)[] {
  // Steps that share their definition share what is stored of it, too.
  const stored = {
    blocked: new Map<JobDefinition, StoredDefinition>(),
    free: new Map<JobDefinition, StoredDefinition>(),
  };
  return steps.map((step, i) => {
    const id = uuidv7(now);
    const make = (blocked: boolean) => {
      const known = blocked ? stored.blocked : stored.free;
      const definition = known.get(step.definition) ?? storedOf(step, blocked, owner, resolved[i]!);
      known.set(step.definition, definition);
      return stepOf(step, { id, workflow, definition }, blocked, now, laterThreshold);
    };
    return { ...step, id, make };
  });
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

function distinctNames(names: readonly string[]): string[] | null {
  const distinct = [...new Set(names)];
  return distinct.length > MOST_NAMES ? null : distinct;
}

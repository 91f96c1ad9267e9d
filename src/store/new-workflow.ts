import { admissionTime } from '../core/admission-time.js';
import { TimeSlice } from '../core/time-slice.js';
import { uuidv7 } from '../core/uuid.js';
import type { ParsedStep, ParsedWorkflow } from '../core/workflow/parse-workflow.js';
import { wakeAt } from '../core/workflow/waiting.js';
import { toStored } from './job-row.js';
import type { Resolved } from './names.js';
import { NEVER, type NewStep, type NewWorkflow } from './submit-workflow.js';

/** More queues or tasks than this are not kept: no restricted key reaches so many. */
const MOST_NAMES = 100;
/** Steps that are made before the time slice is checked again. */
const LOOK_EVERY = 100;

/** Whose a workflow is. */
interface WorkflowOwner {
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
export function firstStep(steps: readonly Pick<ParsedStep, 'parents' | 'wait'>[]): number {
  return Math.max(
    0,
    steps.findIndex(({ parents, wait }) => parents.length === 0 && wait === null),
  );
}

/** A workflow as it is stored, with new ids; `resolved` are the names of its steps. */
export async function newWorkflow(
  owner: WorkflowOwner,
  { name, key, rerunOf, onFailure, running, steps }: ParsedWorkflow,
  resolved: readonly Resolved[],
  now: number,
  laterThreshold: number,
  { definition = null, scheduled = null, ids, dueAt }: WorkflowOrigin = {},
): Promise<NewWorkflow> {
  const { tenant, createdBy } = owner;
  const slice = new TimeSlice();
  const made: NewStep[] = [];
  const edges = { parents: [] as number[], children: [] as number[] };
  const first = ids ? firstStep(steps) : -1;
  for (const [i, step] of steps.entries()) {
    if (i % LOOK_EVERY === 0 && slice.isOver) await slice.next();
    const id = i === first ? ids!.first : uuidv7(now);
    const times = { now, laterThreshold, dueAt };
    made.push(newStep(id, step, owner, resolved[i]!, times, made.at(-1), steps[i - 1]));
    for (const parent of step.parents) {
      edges.parents.push(parent);
      edges.children.push(i);
    }
  }
  const runs = steps.filter(({ wait }) => wait === null);
  return {
    ...{
      id: ids?.workflow ?? uuidv7(now),
      definition,
      scheduled,
      tenant,
      name,
      key,
      onFailure,
      running,
      createdAt: now,
      createdBy,
    },
    rerunOf: rerunOf ?? null,
    queues: distinctNames(runs.map(({ definition }) => definition.queue)),
    tasks: distinctNames(runs.map(({ definition }) => definition.task ?? '')),
    ...{ steps: made, edges },
  };
}

interface Times {
  readonly now: number;
  readonly laterThreshold: number;
  readonly dueAt: number | undefined;
}

function newStep(
  id: string,
  step: ParsedStep,
  { tenant, createdBy, traceparent }: WorkflowOwner,
  { queue, needs }: Resolved,
  { now, laterThreshold, dueAt }: Times,
  before: NewStep | undefined,
  like: ParsedStep | undefined,
): NewStep {
  const { name, runIf, parents, delayMs, wait, refers, definition, payload } = step;
  const blocked = parents.length > 0 || wait !== null;
  const origin = { queue, needs, tenant, createdAt: definition.at, createdBy, traceparent };
  // The steps of a wide graph mostly share their definition, which then is converted and sent once.
  const isAlike = like?.definition === definition && before?.blocked === blocked;
  // The delay of a blocked step counts from its release.
  const runAt = blocked ? definition.at : dueAt === undefined ? definition.runAt : dueAt + delayMs;
  const stored = isAlike ? before.row.definition : toStored({ ...definition, runAt }, origin);
  const { hold } = definition;
  return {
    row: { id, payload, definition: stored },
    ...{ name, runIf, parents: parents.length, delayMs, refers, held: hold, blocked },
    wait: wait === null ? null : JSON.stringify(wait),
    wakeAt: wait === null || parents.length > 0 ? null : wakeAt(wait, now),
    admitAt: blocked ? NEVER : hold ? runAt : admissionTime(runAt, now, laterThreshold),
  };
}

/** The names, each once; null if there are more than are kept. */
export function distinctNames(names: readonly string[]): string[] | null {
  const distinct = [...new Set(names)];
  return distinct.length > MOST_NAMES ? null : distinct;
}

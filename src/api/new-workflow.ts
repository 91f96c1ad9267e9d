import { TimeSlice } from '../core/time-slice.js';
import { uuidv7 } from '../core/uuid.js';
import type { ParsedStep, ParsedWorkflow } from '../core/workflow/parse-workflow.js';
import { wakeAt } from '../core/workflow/waiting.js';
import { admissionTime } from '../dispatch/admission-time.js';
import { toStored } from '../store/job-row.js';
import type { Resolved } from '../store/names.js';
import { NEVER, type NewStep, type NewWorkflow } from '../store/submit-workflow.js';
import type { Owner } from './submitter.js';

/** More queues or tasks than this are not kept: no restricted key reaches so many. */
const MOST_NAMES = 100;
/** Steps that are made before the time slice is checked again. */
const LOOK_EVERY = 100;

/** A workflow as it is stored, with new ids; `resolved` are the names of its steps. */
export async function newWorkflow(
  owner: Owner,
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
  const runs = steps.filter(({ wait }) => wait === null);
  return {
    ...{ id, tenant, name, key, onFailure, running, createdAt: now, createdBy },
    queues: distinctNames(runs.map(({ definition }) => definition.queue)),
    tasks: distinctNames(runs.map(({ definition }) => definition.task ?? '')),
    ...{ steps: made, edges },
  };
}

function newStep(
  step: ParsedStep,
  workflow: string,
  { tenant, createdBy, traceparent }: Owner,
  { queue, needs }: Resolved,
  now: number,
  laterThreshold: number,
  before: NewStep | undefined,
  like: ParsedStep | undefined,
): NewStep {
  const { name, runIf, parents, delayMs, wait, refers, definition, payload } = step;
  const blocked = parents.length > 0 || wait !== null;
  const origin = { queue, needs, tenant, createdAt: definition.at, createdBy, traceparent };
  // The steps of a wide graph mostly share their definition, which then is converted and sent once.
  const isAlike = like?.definition === definition && before?.blocked === blocked;
  // The delay of a blocked step counts from its release.
  const stored = isAlike
    ? before.row.definition
    : toStored(blocked ? { ...definition, runAt: definition.at } : definition, origin);
  const { hold, runAt } = definition;
  return {
    row: { id: uuidv7(now), payload, definition: stored, workflow },
    ...{ name, runIf, parents: parents.length, delayMs: blocked ? delayMs : 0, refers, held: hold, blocked },
    wait: wait === null ? null : JSON.stringify(wait),
    wakeAt: wait === null || parents.length > 0 ? null : wakeAt(wait, now),
    admitAt: blocked ? NEVER : hold ? runAt : admissionTime(runAt, now, laterThreshold),
  };
}

function distinctNames(names: readonly string[]): string[] | null {
  const distinct = [...new Set(names)];
  return distinct.length > MOST_NAMES ? null : distinct;
}

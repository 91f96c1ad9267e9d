import { decideStep, endOfWorkflow, type Weight, weightOf } from '../core/workflow/run-if.js';
import type { WorkflowEnd } from '../core/workflow.js';
import type {
  EndedUnrun,
  PendingEnd,
  Portion,
  ReadPortion,
  ReadSource,
  ReadWorkflow,
  ReleasedStep,
  StepChange,
  StepCounts,
  WorkflowChange,
} from '../store/workflow-portions.js';

/**
 * What the ends of steps mean for those that wait for them: pure, from what was read to what is to be written. Ends are
 * taken in their order until the edges that were read are used up; the last one may be passed on in part.
 */

/** A portion as far as it is decided by the graph alone. */
export interface Plan extends Omit<Portion, 'released'> {
  /** Steps whose jobs may run. */
  readonly ready: readonly (StepCounts & { readonly workflow: string })[];
  /** Those of the ends that are passed on, at least in part. */
  readonly taken: readonly PendingEnd[];
}

const SKIPPED = JSON.stringify({
  code: 'SKIPPED',
  message: 'The step did not run, because of how the steps before it ended.',
});
const STOPPED = JSON.stringify({
  code: 'STOPPED',
  message: 'The step did not run, because its workflow was stopped.',
});

/** The reason of a step that does not run. */
export function skipReason(isStopping: boolean): string {
  return isStopping ? STOPPED : SKIPPED;
}

/** Plans what is written about the first ends; `limit` is the most edges that were to be read. */
export function planPortion(
  ends: readonly PendingEnd[],
  { edges, sources, workflows: read }: ReadPortion,
  limit: number,
): Plan {
  const sourceOf = new Map(sources.map((source) => [source.id, source]));
  const workflowOf = new Map(read.map((workflow) => [workflow.id, workflow]));
  const isWhole = edges.length < limit;
  const last = isWhole ? ends.length : edges[edges.length - 1]!.n;
  const taken = ends.slice(0, last);
  const counted = isWhole ? taken : taken.slice(0, -1);
  const workflows = workflowChanges(taken, counted, workflowOf, sourceOf);
  const weights = taken.map(({ job, state }): Weight => weightOf(state, sourceOf.get(job)?.bad ?? 0));
  const counts = new Map<string, Counts>();
  for (const { n, child: read } of edges) {
    let child = counts.get(read.id);
    if (!child) {
      child = countsOf(read, ends[n - 1]!.workflow);
      counts.set(read.id, child);
    }
    child.parentsLeft -= 1;
    const weight = weights[n - 1]!;
    if (weight !== 'neither') child[weight] += 1;
  }
  const isStopping = (workflow: string) => workflows.get(workflow)?.isStopping ?? false;
  const { ready, ended } = decide([...counts.values()], isStopping);
  return {
    taken,
    counted: counted.map(({ job }) => job),
    partly: isWhole ? null : { job: taken.at(-1)!.job, place: edges[edges.length - 1]!.child.id },
    steps: stepChanges(counts, counted, new Set(ready.map(({ id }) => id))),
    ready,
    ended: [...ended, ...outerEnds(workflows)],
    workflows: [...workflows.values()].map(({ change }) => change),
  };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
/** The counts of a child as they become. */
type Counts = Mutable<StepCounts> & { readonly workflow: string };

/** The counts as they were read. Written out, because a spread costs several times as much, and there may be thousands. */
function countsOf(child: StepCounts, workflow: string): Counts {
  const { id, runIf, parents, parentsLeft, ok, bad, released, outcome, delayMs, wait, inner, refers } = child;
  return {
    id,
    runIf,
    parents,
    parentsLeft,
    ok,
    bad,
    released,
    outcome,
    delayMs,
    wait,
    inner,
    refers,
    workflow,
  };
}

function decide(
  children: readonly Counts[],
  isStopping: (workflow: string) => boolean,
): { readonly ready: Counts[]; readonly ended: EndedUnrun[] } {
  const ready: Counts[] = [];
  const ended: EndedUnrun[] = [];
  for (const child of children) {
    if (child.parentsLeft > 0 || child.released || child.outcome !== null) continue;
    const stops = isStopping(child.workflow);
    if (!stops && decideStep(child) === 'run') ready.push(child);
    else ended.push({ id: child.id, state: 'skipped', error: skipReason(stops), result: null });
  }
  return { ready, ended };
}

/** A step may be a child of one end and have ended itself: all that is written about it is one change. */
function stepChanges(
  counts: ReadonlyMap<string, Counts>,
  counted: readonly PendingEnd[],
  released: ReadonlySet<string>,
): StepChange[] {
  const changes = new Map<string, Mutable<StepChange>>();
  for (const { id, parentsLeft, ok, bad } of counts.values()) {
    const change = changeOf(id);
    change.parentsLeft = parentsLeft;
    change.ok = ok;
    change.bad = bad;
    if (released.has(id)) change.released = true;
    changes.set(id, change);
  }
  for (const { job, state, finishedAt } of counted) {
    const change = changes.get(job) ?? changeOf(job);
    change.outcome = state;
    change.finishedAt = finishedAt;
    changes.set(job, change);
  }
  return [...changes.values()];
}

/** The change that changes nothing, to be filled in. Written out like the counts. */
function changeOf(id: string): Mutable<StepChange> {
  // biome-ignore format: one line.
  return { id, parentsLeft: null, ok: null, bad: null, released: null, outcome: null, finishedAt: null, wakeAt: null, parked: null };
}

interface ChangedWorkflow {
  readonly change: WorkflowChange;
  readonly isStopping: boolean;
  /** As it was read; null for one that is only stopped. */
  readonly read: ReadWorkflow | null;
}

/** The ends of steps whose workflows end: in the same statement, so that neither is ever without the other. */
function outerEnds(workflows: ReadonlyMap<string, ChangedWorkflow>): EndedUnrun[] {
  const ends: EndedUnrun[] = [];
  for (const { change, read } of workflows.values()) {
    if (!read || read.outerStep === null || read.stepsLeft > change.stepsEnded) continue;
    const state = endOfWorkflow(read.stopping === 'cancel', read.failed + change.stepsFailed);
    ends.push(endOfOuter(read.outerStep, change.id, state));
  }
  return ends;
}

/** How a step ends whose workflow has ended. */
export function endOfOuter(step: string, workflow: string, state: WorkflowEnd): EndedUnrun {
  if (state === 'succeeded')
    return { id: step, state, error: null, result: JSON.stringify({ workflow, state }) };
  const message = `The workflow ${workflow}, which is this step, is ${state}.`;
  const error = JSON.stringify({ code: 'WORKFLOW_UNSUCCESSFUL', message });
  return { id: step, state: 'failed', error, result: null };
}

function workflowChanges(
  taken: readonly PendingEnd[],
  counted: readonly PendingEnd[],
  workflowOf: ReadonlyMap<string, ReadWorkflow>,
  sourceOf: ReadonlyMap<string, ReadSource>,
): Map<string, ChangedWorkflow> {
  const sums = new Map<string, { ended: number; failed: number; hasFailed: boolean; read: ReadWorkflow }>();
  // Only the last one may be passed on in part.
  for (const [i, { workflow, state }] of taken.entries()) {
    const read = workflowOf.get(workflow);
    // A workflow that was removed has nothing left to be counted.
    if (!read) continue;
    const sum = sums.get(workflow) ?? { ended: 0, failed: 0, hasFailed: false, read };
    sums.set(workflow, sum);
    const isFailed = state === 'failed' || state === 'cancelled';
    sum.hasFailed ||= isFailed;
    if (i >= counted.length) continue;
    sum.ended += 1;
    if (isFailed) sum.failed += 1;
  }
  const changes = new Map<string, ChangedWorkflow>();
  for (const [id, { ended, failed, hasFailed, read }] of sums) {
    const stops = hasFailed && read.onFailure === 'stop' && read.stepsLeft > ended;
    const stopping = read.stopping === null && stops ? ('failure' as const) : null;
    const change = { id, stepsEnded: ended, stepsFailed: failed, stopping };
    changes.set(id, { change, isStopping: read.stopping !== null || stopping !== null, read });
  }
  for (const end of counted) {
    const inner = sourceOf.get(end.job)?.innerRunning ?? null;
    if (inner !== null) stop(changes, inner);
  }
  return changes;
}

/** The workflow of a step that has ended by itself, because somebody cancelled it, has nobody to run for. */
function stop(changes: Map<string, ChangedWorkflow>, id: string): void {
  const known = changes.get(id);
  const change = known?.change ?? { id, stepsEnded: 0, stepsFailed: 0, stopping: null };
  if (known?.read?.stopping !== undefined && known.read.stopping !== null) return;
  changes.set(id, {
    ...{ change: { ...change, stopping: 'cancel' }, isStopping: true },
    read: known?.read ?? null,
  });
}

/** The portion up to the first edges, for one that would be too large. */
export function firstEdges(read: ReadPortion, count: number): ReadPortion {
  return { ...read, edges: read.edges.slice(0, count) };
}

/** A released step as it is written, due no earlier than its delay after its release. */
export function released(
  { id, delayMs, held = false }: Pick<StepCounts, 'id' | 'delayMs'> & { readonly held?: boolean },
  now: number,
  payload: string | null = null,
): ReleasedStep {
  return { id, runAt: now + delayMs, payload, parked: held };
}

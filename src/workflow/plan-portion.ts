import { decideStep, endOfWorkflow, type Weight, weightOf } from '../core/workflow/run-if.js';
import type { WorkflowEnd } from '../core/workflow.js';
import type {
  EndedUnrun,
  PendingEnd,
  Portion,
  ReadEdge,
  ReadSource,
  ReleasedStep,
  StepChange,
  StepCounts,
  WorkflowChange,
} from '../store/workflow-portions.js';

/**
 * What the ends of steps mean for those that wait for them: pure, from what was read to what is to be written. Ends are
 * taken in their order until the edges that were read are used up; the last one may be passed on in part.
 */

/** What was read about the ends. */
export interface ReadPortion {
  /** In the order of the ends and, for each, of the children. */
  readonly edges: readonly ReadEdge[];
  readonly sources: readonly ReadSource[];
}

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
  { edges, sources }: ReadPortion,
  limit: number,
): Plan {
  const sourceOf = new Map(sources.map((source) => [source.id, source]));
  const isWhole = edges.length < limit;
  const last = isWhole ? ends.length : edges[edges.length - 1]!.n;
  const taken = ends.slice(0, last);
  const counted = isWhole ? taken : taken.slice(0, -1);
  const workflows = workflowChanges(taken, counted, sourceOf);
  const weights = taken.map(({ job, state }): Weight => weightOf(state, sourceOf.get(job)?.bad ?? 0));
  const counts = new Map<string, Counts>();
  for (const edge of edges) {
    let child = counts.get(edge.id);
    if (!child) {
      child = countsOf(edge, ends[edge.n - 1]!.workflow);
      counts.set(edge.id, child);
    }
    child.parentsLeft -= 1;
    const weight = weights[edge.n - 1]!;
    if (weight !== 'neither') child[weight] += 1;
  }
  const isStopping = (workflow: string) => workflows.get(workflow)?.isStopping ?? false;
  const { ready, ended } = decide([...counts.values()], isStopping);
  return {
    taken,
    counted: counted.map(({ job }) => job),
    partly: isWhole ? null : { job: taken.at(-1)!.job, place: edges[edges.length - 1]!.id },
    steps: stepChanges(counts, counted, new Set(ready.map(({ id }) => id))),
    ready,
    ended: [...ended, ...outerEnds(workflows)],
    workflows: [...workflows.values()].map(({ change }) => change),
  };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
/** The counts of a child as they become. */
type Counts = Mutable<StepCounts> & { readonly workflow: string };

/** The counts as they were read. Written out, because a spread costs several times as much, and there is one per edge. */
function countsOf(edge: ReadEdge, workflow: string): Counts {
  const { id, runIf, parents, parentsLeft, ok, bad, released, outcome, delayMs, wait, inner, refers } = edge;
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
  /** A step of it that has ended; null for one that is only stopped. */
  readonly source: ReadSource | null;
}

/** The ends of steps whose workflows end: in the same statement, so that neither is ever without the other. */
function outerEnds(workflows: ReadonlyMap<string, ChangedWorkflow>): EndedUnrun[] {
  const ends: EndedUnrun[] = [];
  for (const { change, source } of workflows.values()) {
    if (!source || source.outerStep === null || source.stepsLeft > change.stepsEnded) continue;
    const state = endOfWorkflow(source.stopping === 'cancel', source.failed + change.stepsFailed);
    ends.push(endOfOuter(source.outerStep, change.id, state));
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
  sourceOf: ReadonlyMap<string, ReadSource>,
): Map<string, ChangedWorkflow> {
  const sums = new Map<string, { ended: number; failed: number; hasFailed: boolean; source: ReadSource }>();
  const isCounted = new Set(counted);
  for (const end of taken) {
    const source = sourceOf.get(end.job);
    // A workflow that was removed has nothing left to be counted.
    if (!source) continue;
    const sum = sums.get(end.workflow) ?? { ended: 0, failed: 0, hasFailed: false, source };
    sums.set(end.workflow, sum);
    const isFailed = end.state === 'failed' || end.state === 'cancelled';
    sum.hasFailed ||= isFailed;
    if (!isCounted.has(end)) continue;
    sum.ended += 1;
    if (isFailed) sum.failed += 1;
  }
  const changes = new Map<string, ChangedWorkflow>();
  for (const [id, { ended, failed, hasFailed, source }] of sums) {
    const stops = hasFailed && source.onFailure === 'stop' && source.stepsLeft > ended;
    const stopping = source.stopping === null && stops ? ('failure' as const) : null;
    const change = { id, stepsEnded: ended, stepsFailed: failed, stopping };
    changes.set(id, { change, isStopping: source.stopping !== null || stopping !== null, source });
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
  if (known?.source?.stopping !== undefined && known.source.stopping !== null) return;
  changes.set(id, {
    ...{ change: { ...change, stopping: 'cancel' }, isStopping: true },
    source: known?.source ?? null,
  });
}

/** The portion up to the first edges, for one that would be too large. */
export function firstEdges({ edges, sources }: ReadPortion, count: number): ReadPortion {
  return { edges: edges.slice(0, count), sources };
}

/** A released step as it is written, due no earlier than its delay after its release. */
export function released(
  { id, delayMs, held = false }: Pick<StepCounts, 'id' | 'delayMs'> & { readonly held?: boolean },
  now: number,
  payload: string | null = null,
): ReleasedStep {
  return { id, runAt: now + delayMs, payload, parked: held };
}

/**
 * How a workflow has to end, written down as plainly as possible and without code of the product: what runs is decided by
 * looking at the ends of the parents themselves, not by counters. Property tests drive it beside the server; the checker of
 * the fault harness asks it what is wrong with the ends that it observed.
 */

export type ModelRunIf = 'all-succeeded' | 'all-finished' | 'any-failed' | 'any-succeeded';
/** How a step that ran can end. Failed means for good: with all its retries, or expired, or lost. */
export type ModelOutcome = 'succeeded' | 'failed' | 'cancelled';
export type ModelEnd = ModelOutcome | 'skipped';
export type ModelWorkflowEnd = 'succeeded' | 'failed' | 'cancelled';

export interface ModelStep {
  readonly after: readonly string[];
  readonly runIf: ModelRunIf;
}

export interface ModelGraph {
  readonly steps: Readonly<Record<string, ModelStep>>;
  readonly onFailure: 'stop' | 'continue';
  readonly running: 'finish' | 'cancel';
}

/** Whether a parent counts as good or bad for its children; null for neither. */
function countsAs(
  graph: ModelGraph,
  ends: ReadonlyMap<string, ModelEnd>,
  step: string,
): 'good' | 'bad' | null {
  const end = ends.get(step);
  if (end === 'succeeded') return 'good';
  if (end === 'failed' || end === 'cancelled') return 'bad';
  // A step that was skipped passes on what is bad about its own parents.
  const { after } = graph.steps[step]!;
  return after.some((parent) => countsAs(graph, ends, parent) === 'bad') ? 'bad' : null;
}

/** Whether a step runs, given how all of its parents ended. */
export function runs(graph: ModelGraph, ends: ReadonlyMap<string, ModelEnd>, step: string): boolean {
  const { after, runIf } = graph.steps[step]!;
  const counts = after.map((parent) => countsAs(graph, ends, parent));
  if (runIf === 'all-finished') return true;
  if (runIf === 'all-succeeded') return counts.every((each) => each === 'good');
  if (runIf === 'any-succeeded') return counts.some((each) => each === 'good');
  return counts.some((each) => each === 'bad');
}

/** One workflow, step by step, in any order that the server might choose. */
export class WorkflowModel {
  readonly ends = new Map<string, ModelEnd>();
  /** Steps that were started and have not ended. */
  readonly running = new Set<string>();
  private isStopped = false;
  private isCancelled = false;

  constructor(readonly graph: ModelGraph) {
    this.skip();
  }

  /** The steps that may start now. */
  ready(): string[] {
    return this.undecided().filter((step) => this.isReached(step));
  }

  start(step: string): void {
    if (!this.ready().includes(step)) throw new Error(`${step} may not start`);
    this.running.add(step);
  }

  /** A step that runs has ended. */
  end(step: string, outcome: ModelOutcome): void {
    if (!this.running.delete(step)) throw new Error(`${step} does not run`);
    this.ends.set(step, outcome);
    if (outcome !== 'succeeded' && this.graph.onFailure === 'stop') this.stop(this.graph.running);
    this.skip();
  }

  /** Somebody cancels the workflow: what runs is cancelled, the rest is skipped. */
  cancel(): void {
    if (this.state !== 'running') throw new Error('the workflow has ended');
    this.isCancelled = true;
    this.stop('cancel');
    this.skip();
  }

  get state(): 'running' | ModelWorkflowEnd {
    if (this.ends.size < Object.keys(this.graph.steps).length) return 'running';
    if (this.isCancelled) return 'cancelled';
    const isBad = [...this.ends.values()].some((end) => end === 'failed' || end === 'cancelled');
    return isBad ? 'failed' : 'succeeded';
  }

  private stop(running: 'finish' | 'cancel'): void {
    this.isStopped = true;
    if (running === 'finish') return;
    for (const step of this.running) this.ends.set(step, 'cancelled');
    this.running.clear();
  }

  /** Skips what cannot run any more, until there is nothing left of it. */
  private skip(): void {
    for (let before = -1; before !== this.ends.size; ) {
      before = this.ends.size;
      for (const step of this.undecided()) {
        const isPassed = this.isReached(step) && !runs(this.graph, this.ends, step);
        if (this.isStopped || isPassed) this.ends.set(step, 'skipped');
      }
    }
  }

  private undecided(): string[] {
    return Object.keys(this.graph.steps).filter((step) => !this.ends.has(step) && !this.running.has(step));
  }

  private isReached(step: string): boolean {
    return this.graph.steps[step]!.after.every((parent) => this.ends.has(parent));
  }
}

/**
 * The ends of a workflow whose steps end in this way if they run. Without `stop` the order makes no difference; with it, each
 * step that can start is started and ended alone, in the order in which the graph names them.
 */
export function expectedEnds(
  graph: ModelGraph,
  outcomeOf: (step: string) => ModelOutcome,
): { readonly steps: ReadonlyMap<string, ModelEnd>; readonly state: ModelWorkflowEnd } {
  const model = new WorkflowModel(graph);
  for (let [step] = model.ready(); step !== undefined; [step] = model.ready()) {
    model.start(step);
    model.end(step, outcomeOf(step));
  }
  return { steps: model.ends, state: model.state as ModelWorkflowEnd };
}

/** What was seen of a workflow from outside. */
export interface ObservedWorkflow {
  readonly state: string;
  /** Whether a cancellation of the workflow was accepted; unknown if its answer was lost. */
  readonly cancelled: boolean | 'unknown';
  readonly steps: Readonly<Record<string, ObservedStep>>;
}

export interface ObservedStep {
  readonly state: string;
  /** Starts of the step in the order of time, and the moment at which it ended; any one clock. */
  readonly starts: readonly number[];
  readonly endedAt: number | null;
}

/** Everything that is wrong with what was seen, each as one sentence; empty if some order of events explains all of it. */
export function wrongEnds(graph: ModelGraph, seen: ObservedWorkflow): string[] {
  const names = Object.keys(graph.steps);
  const unended = names.filter((name) => !isEnd(seen.steps[name]?.state));
  if (unended.length > 0) return unended.map((name) => `step ${name} has not ended`);
  const ends = new Map(names.map((name) => [name, seen.steps[name]!.state as ModelEnd]));
  const isBad = [...ends.values()].some((end) => end === 'failed' || end === 'cancelled');
  const mayHaveStopped = seen.cancelled !== false || (graph.onFailure === 'stop' && isBad);
  const wrong: string[] = [];
  for (const name of names) {
    const { state, starts } = seen.steps[name]!;
    const isMet = runs(graph, ends, name);
    if (starts.length > 0 && !isMet) wrong.push(`step ${name} ran although its runIf was not met`);
    if (state === 'succeeded' && starts.length === 0) wrong.push(`step ${name} succeeded without a start`);
    if (state === 'skipped' && starts.length > 0)
      wrong.push(`step ${name} was skipped although it had started`);
    if (state === 'skipped' && isMet && !mayHaveStopped)
      wrong.push(`step ${name} was skipped although its runIf was met`);
    for (const parent of graph.steps[name]!.after) {
      const endedAt = seen.steps[parent]!.endedAt;
      if (starts[0] !== undefined && endedAt !== null && starts[0] < endedAt) {
        wrong.push(`step ${name} started before ${parent} had ended`);
      }
    }
  }
  const expected = isBad ? 'failed' : 'succeeded';
  const allowed =
    seen.cancelled === true ? ['cancelled'] : seen.cancelled === false ? [expected] : [expected, 'cancelled'];
  if (!allowed.includes(seen.state)) wrong.push(`the workflow is ${seen.state}, not ${allowed.join(' or ')}`);
  return wrong;
}

function isEnd(state: string | undefined): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'cancelled' || state === 'skipped';
}

import type { StepState } from '../workflow.js';

/**
 * The critical path of a workflow: the chain of steps that determined when it ended, or that determines how far it is. From
 * its last step backwards, every step on it began to wait when the one before it ended, so that their times add up to the time
 * from the submission on.
 */

/** A step as far as times are concerned. */
export interface TimedStep {
  readonly state: StepState;
  /** Null if it has not ended. */
  readonly finishedAt: number | null;
  /** Indexes into the steps. */
  readonly parents: readonly number[];
}

/** A step of the path: it could run from `from` on, and ended, or is still there, at `until`. */
export interface PathStep {
  readonly index: number;
  readonly from: number;
  readonly until: number;
}

/** The critical path, first step first. `now` is the end of what has not ended. */
export function criticalPath(steps: readonly TimedStep[], createdAt: number, now: number): PathStep[] {
  const path: PathStep[] = [];
  let index = lastOf(steps, createdAt);
  let until = Math.max(createdAt, steps[index]?.finishedAt ?? now);
  while (index !== -1) {
    const before = lastParent(steps, index, until);
    const from = before === -1 ? createdAt : Math.max(createdAt, steps[before]!.finishedAt!);
    path.push({ index, from, until });
    index = before;
    until = from;
  }
  return path.reverse();
}

/**
 * The step that the workflow waits for, or that was the last: of those that could run and have not ended the one that has been
 * there for longest, else the last one that ended by itself.
 */
function lastOf(steps: readonly TimedStep[], createdAt: number): number {
  let open = -1;
  let openSince = Number.POSITIVE_INFINITY;
  let last = -1;
  for (const [index, step] of steps.entries()) {
    if (step.finishedAt !== null) {
      if (last === -1 || isLater(step, steps[last]!)) last = index;
      continue;
    }
    if (step.parents.some((parent) => steps[parent]!.finishedAt === null)) continue;
    const since = step.parents.reduce((at, parent) => Math.max(at, steps[parent]!.finishedAt!), createdAt);
    if (since < openSince) {
      open = index;
      openSince = since;
    }
  }
  return open === -1 ? last : open;
}

/** Whether the end of a step says more about the end of the workflow: a skipped step took no time of its own. */
function isLater(step: TimedStep, than: TimedStep): boolean {
  const [isSkipped, wasSkipped] = [step.state === 'skipped', than.state === 'skipped'];
  return isSkipped === wasSkipped ? step.finishedAt! >= than.finishedAt! : wasSkipped;
}

/**
 * The parent that ended last; -1 without one. One that ended after the step was retried by itself later, and did not determine
 * when the step could run.
 */
function lastParent(steps: readonly TimedStep[], index: number, until: number): number {
  let last = -1;
  for (const parent of steps[index]!.parents) {
    const { finishedAt } = steps[parent]!;
    if (finishedAt === null || finishedAt > until) continue;
    if (last === -1 || finishedAt >= steps[last]!.finishedAt!) last = parent;
  }
  return last;
}

/** The longest steps of a path, in their order; `left` is how many others there are. */
export function longestSteps(
  path: readonly PathStep[],
  most: number,
): { readonly steps: readonly PathStep[]; readonly left: number } {
  if (path.length <= most) return { steps: path, left: 0 };
  const byLength = path.map((_, i) => i);
  byLength.sort((a, b) => lengthOf(path[b]!) - lengthOf(path[a]!) || a - b);
  const chosen = byLength.slice(0, most).sort((a, b) => a - b);
  return { steps: chosen.map((i) => path[i]!), left: path.length - most };
}

function lengthOf({ from, until }: PathStep): number {
  return until - from;
}

import type { StepState } from '../workflow.js';

/**
 * The critical path of a workflow: the chain of steps that determined when it ended, or that determines how far it is. From
 * its last step backwards, every step on it began to wait when the one before it ended, or added it, so that their times add up
 * to the time from the submission on.
 */

/** A step as far as times are concerned. */
export interface TimedStep {
  readonly state: StepState;
  /** Null if it has not ended. */
  readonly finishedAt: number | null;
  /** Indexes into the steps. */
  readonly parents: readonly number[];
  /** The step that added it while it ran, by its index, and when; missing for one that was there from the beginning. */
  readonly added?: { readonly by: number; readonly at: number } | undefined;
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
    const before = stepBefore(steps, index, until);
    const from = Math.max(createdAt, before?.at ?? createdAt);
    path.push({ index, from, until });
    index = before?.index ?? -1;
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
    const there = Math.max(createdAt, step.added?.at ?? createdAt);
    const since = step.parents.reduce((at, parent) => Math.max(at, steps[parent]!.finishedAt!), there);
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

/** A step that another one had to wait for, and until when. */
interface Before {
  readonly index: number;
  readonly at: number;
}

/**
 * The parent that ended last, or the step that added this one if that was later; null without any. A parent that ended after the
 * step was retried by itself later, and did not determine when the step could run.
 */
function stepBefore(steps: readonly TimedStep[], index: number, until: number): Before | null {
  const { parents, added } = steps[index]!;
  let last: Before | null = added && added.at <= until ? { index: added.by, at: added.at } : null;
  for (const parent of parents) {
    const { finishedAt } = steps[parent]!;
    if (finishedAt === null || finishedAt > until) continue;
    if (last === null || finishedAt >= last.at) last = { index: parent, at: finishedAt };
  }
  return last;
}

/** Since when a step could run that has ended or is still there at `until`; null while a step before it has not ended. */
export function readyAt(
  steps: readonly TimedStep[],
  index: number,
  createdAt: number,
  until: number,
): number | null {
  if (steps[index]!.parents.some((parent) => steps[parent]!.finishedAt === null)) return null;
  return Math.max(createdAt, stepBefore(steps, index, until)?.at ?? createdAt);
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

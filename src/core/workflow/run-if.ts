import type { RunIf, StepEnd, WorkflowEnd } from '../workflow.js';

/**
 * Whether a step runs, and what its end means for those that wait for it. It is decided once, when no parent is left: an
 * earlier release of `any-*` would need a second decision, and `$from` may point at a parent that still runs.
 */

/** What is known of the parents of a step when none of them is left. */
export interface ParentCounts {
  readonly parents: number;
  /** How many of them count as ok. */
  readonly ok: number;
  /** How many of them count as bad. */
  readonly bad: number;
}

/** What a parent adds to the counts of its children. */
export type Weight = 'ok' | 'bad' | 'neither';

/** Whether a step whose parents have all ended runs. */
export function decideStep({
  runIf,
  parents,
  ok,
  bad,
}: ParentCounts & { readonly runIf: RunIf }): 'run' | 'skip' {
  return isMet(runIf, parents, ok, bad) ? 'run' : 'skip';
}

function isMet(runIf: RunIf, parents: number, ok: number, bad: number): boolean {
  switch (runIf) {
    case 'all-succeeded':
      return ok === parents;
    case 'all-finished':
      return true;
    case 'any-failed':
      return bad > 0;
    case 'any-succeeded':
      return ok > 0;
  }
}

/**
 * How the end of a step counts for its children; `bad` is how many of its own parents counted as bad. A failure passes
 * through the steps that were skipped because of it: otherwise an `any-failed` alert at the end of a chain never runs. An
 * alert that was skipped because nothing had failed is neither good nor bad.
 */
export function weightOf(end: StepEnd, bad: number): Weight {
  switch (end) {
    case 'succeeded':
      return 'ok';
    case 'failed':
    case 'cancelled':
      return 'bad';
    case 'skipped':
      return bad > 0 ? 'bad' : 'neither';
  }
}

/** How a workflow ends when its last step has ended: `bad` is how many steps failed or were cancelled by themselves. */
export function endOfWorkflow(isCancelled: boolean, bad: number): WorkflowEnd {
  if (isCancelled) return 'cancelled';
  return bad > 0 ? 'failed' : 'succeeded';
}

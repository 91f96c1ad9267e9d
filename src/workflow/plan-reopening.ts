import { decideStep, type Weight, weightOf } from '../core/workflow/run-if.js';
import { eventOf, type Waits, wakeAt } from '../core/workflow/waiting.js';
import type { EdgeRow } from '../store/read-workflows.js';
import type { GraphStepRow, ReopenedStep } from '../store/reopen-steps.js';

/** Which steps run again, and what those around them are counted to: pure. Every step is behind its parents. */

/** What is to run again. */
export interface Again {
  /** Steps that run again. */
  readonly chosen: ReadonlySet<string>;
  /** Whether every step behind them runs again, too; else only those that were skipped are decided again. */
  readonly withDescendants: boolean;
  /** Whether all skipped steps are decided again, because the workflow was stopped. */
  readonly withSkipped: boolean;
}

/** The names of the events that steps of a workflow wait for. */
export function eventsOf(steps: readonly GraphStepRow[]): string[] {
  return steps.flatMap((step) => {
    const wait = waitOf(step);
    return (wait && eventOf(wait)) ?? [];
  });
}

function waitOf({ wait }: GraphStepRow): Waits | null {
  return wait === null ? null : (JSON.parse(wait) as Waits);
}

/** The steps that change, and the figures of the workflow. */
export interface ReopeningPlan {
  readonly steps: readonly ReopenedStep[];
  /** Those that go back from history, by their names. */
  readonly reopened: readonly GraphStepRow[];
  readonly stepsLeft: number;
  readonly failed: number;
}

/** The steps at one end of the edges, by those at the other. */
function grouped(
  edges: readonly EdgeRow[],
  by: 'parent' | 'child',
  wanted: 'parent' | 'child',
): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const edge of edges) {
    const group = groups.get(edge[by]);
    if (group) group.push(edge[wanted]);
    else groups.set(edge[by], [edge[wanted]]);
  }
  return groups;
}

/** The steps below the given ones, and these. */
export function subtree(roots: Iterable<string>, edges: readonly EdgeRow[]): Set<string> {
  const children = grouped(edges, 'parent', 'child');
  const found = new Set(roots);
  for (const id of found) for (const child of children.get(id) ?? []) found.add(child);
  return found;
}

/** Plans that steps run again. To be called when every end is counted. */
export function planReopening(
  steps: readonly GraphStepRow[],
  edges: readonly EdgeRow[],
  { chosen, withDescendants, withSkipped }: Again,
  /** Names of the events that have come. */
  events: ReadonlySet<string>,
  now: number,
  /** Whether the workflow is on hold. */
  held = false,
): ReopeningPlan {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const parents = grouped(edges, 'child', 'parent');
  const parentsOf = (id: string) => parents.get(id) ?? [];
  const open = new Set<string>();
  const bads = new Map<string, number>();
  const changed: ReopenedStep[] = [];
  const reopened: GraphStepRow[] = [];
  let failed = 0;
  for (const step of steps) {
    const { id, outcome, runIf } = step;
    const theirs = parentsOf(id);
    const isBehind = theirs.some((parent) => open.has(parent) && byId.get(parent)!.outcome !== null);
    const isReopened =
      outcome !== null &&
      (chosen.has(id) ||
        (withDescendants && isBehind) ||
        (outcome === 'skipped' && (isBehind || withSkipped)));
    if (isReopened || outcome === null) open.add(id);
    const counts = countParents(theirs, open, byId, bads);
    bads.set(id, counts.bad);
    if (outcome !== null && !isReopened) {
      if (outcome === 'failed' || outcome === 'cancelled') failed += 1;
      continue;
    }
    // A step that has started, or waits for its time, stays as it is.
    if (!isReopened && (step.released || !isBehind)) continue;
    const runs =
      counts.parentsLeft === 0 &&
      (chosen.has(id) ||
        theirs.length === 0 ||
        decideStep({ runIf, parents: theirs.length, ...counts }) === 'run');
    const isLeft = isReopened && counts.parentsLeft === 0 && !runs;
    if (isLeft) {
      // It would be skipped again, and so it stays what it is.
      open.delete(id);
      continue;
    }
    changed.push({
      ...{ id, finishedAt: isReopened ? step.finishedAt : null, ...counts, released: runs },
      blocked: !runs || held || step.wait !== null || step.refers,
      wakeAt: runs ? wakeOf(step, events, now) : null,
      parked: runs && held && step.wait === null && !step.refers,
    });
    if (isReopened) reopened.push(step);
  }
  return { steps: changed, reopened, stepsLeft: open.size, failed };
}

/** When a step that may run is looked at: at once if its payload is to be resolved or its event has come. */
function wakeOf(step: GraphStepRow, events: ReadonlySet<string>, now: number): number | null {
  const wait = waitOf(step);
  if (wait === null) return step.refers ? now : null;
  const event = eventOf(wait);
  return event !== null && events.has(event) ? now : wakeAt(wait, now);
}

function countParents(
  parents: readonly string[],
  open: ReadonlySet<string>,
  byId: ReadonlyMap<string, GraphStepRow>,
  bads: ReadonlyMap<string, number>,
): { parentsLeft: number; ok: number; bad: number } {
  const counts = { parentsLeft: 0, ok: 0, bad: 0 };
  for (const parent of parents) {
    if (open.has(parent)) counts.parentsLeft += 1;
    else {
      const weight: Weight = weightOf(byId.get(parent)!.outcome!, bads.get(parent)!);
      if (weight !== 'neither') counts[weight] += 1;
    }
  }
  return counts;
}

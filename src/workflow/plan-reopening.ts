import { decideStep, type Weight, weightOf } from '../core/workflow/run-if.js';
import { eventOf, type Waits, wakeAt } from '../core/workflow/waiting.js';
import type { EdgeRow } from '../store/read-workflows.js';
import type { GraphStepRow, ReopenedStep } from '../store/reopen-steps.js';

/** Which steps run again, and what those around them are counted to: pure. */

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

/** A step that runs again with everything behind it. */
export interface Rerun {
  /** The step and those behind it. */
  readonly below: ReadonlySet<string>;
  /** Steps that these had added, and that these have added in turn: whoever runs again adds anew. */
  readonly removed: ReadonlySet<string>;
  /** Steps that were put behind removed ones by others, who do not run again: they would be lost. */
  readonly lost: readonly GraphStepRow[];
}

/** What it means to run a step and everything behind it again. */
export function planRerun(root: string, steps: readonly GraphStepRow[], edges: readonly EdgeRow[]): Rerun {
  const below = subtree([root], edges);
  const added = new Map<string, string[]>();
  for (const { id, addedBy } of steps) {
    if (addedBy === null || id === root) continue;
    const known = added.get(addedBy);
    if (known) known.push(id);
    else added.set(addedBy, [id]);
  }
  const removed = new Set([...below].flatMap((id) => added.get(id) ?? []));
  for (const id of removed) for (const each of added.get(id) ?? []) removed.add(each);
  if (removed.size === 0) return { below, removed, lost: [] };
  const byId = new Map(steps.map((step) => [step.id, step]));
  const pairs = new Set(edges.map(({ parent, child }) => `${parent} ${child}`));
  // Who waits for a step waits for what it adds, and does so again; others do not.
  const lost = edges.filter(
    ({ parent, child }) =>
      removed.has(parent) && !removed.has(child) && !pairs.has(`${byId.get(parent)!.addedBy} ${child}`),
  );
  return { below, removed, lost: lost.map(({ child }) => byId.get(child)!) };
}

/** The steps with every one behind its parents: steps that were added later may come before others. */
function inOrder(steps: readonly GraphStepRow[], edges: readonly EdgeRow[]): GraphStepRow[] {
  const left = new Map<string, number>();
  for (const { child } of edges) left.set(child, (left.get(child) ?? 0) + 1);
  const children = grouped(edges, 'parent', 'child');
  const byId = new Map(steps.map((step) => [step.id, step]));
  const order = steps.filter(({ id }) => !left.has(id));
  for (const { id } of order) {
    for (const child of children.get(id) ?? []) {
      const rest = left.get(child)! - 1;
      left.set(child, rest);
      if (rest === 0) order.push(byId.get(child)!);
    }
  }
  return order;
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
  given: readonly GraphStepRow[],
  edges: readonly EdgeRow[],
  { chosen, withDescendants, withSkipped }: Again,
  /** Names of the events that have come. */
  events: ReadonlySet<string>,
  now: number,
  /** Whether the workflow is on hold. */
  held = false,
): ReopeningPlan {
  const steps = inOrder(given, edges);
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
      ...{ id, finishedAt: isReopened ? step.finishedAt : null, parents: theirs.length, ...counts },
      released: runs,
      blocked: !runs || held || step.wait !== null || step.inner || step.refers,
      wakeAt: runs ? wakeOf(step, events, now) : null,
      parked: runs && held && step.wait === null && !step.inner && !step.refers,
    });
    if (isReopened) reopened.push(step);
  }
  return { steps: changed, reopened, stepsLeft: open.size, failed };
}

/** When a step that may run is looked at: at once if its payload is to be resolved, its workflow is to run, or its event has come. */
function wakeOf(step: GraphStepRow, events: ReadonlySet<string>, now: number): number | null {
  const wait = waitOf(step);
  if (wait === null) return step.refers || step.inner ? now : null;
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

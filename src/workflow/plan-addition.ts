import { decideStep, weightOf } from '../core/workflow/run-if.js';
import { eventOf, wakeAt } from '../core/workflow/waiting.js';
import type { AddedStep, Draft, StepBeside } from '../store/add-steps.js';
import type { EndedUnrun } from '../store/workflow-portions.js';
import { skipReason } from './plan-portion.js';

/**
 * What steps that are added to a running workflow wait for: pure, from what was read to what is to be stored. To be called
 * when every end is counted: a parent has ended if it has an outcome, and is counted here instead of by its end.
 */

/** What the new steps are put beside. */
export interface AdditionSite {
  /** Steps of the workflow by their names. */
  readonly known: ReadonlyMap<string, StepBeside>;
  /** Steps that wait for all of the new ones from now on. */
  readonly joiners: readonly string[];
  readonly lastPlace: number;
  /** Names of the events that have come. */
  readonly events: ReadonlySet<string>;
}

/** The steps as they are stored. */
export interface AdditionPlan {
  readonly steps: readonly AddedStep[];
  readonly edges: { readonly parents: readonly string[]; readonly children: readonly string[] };
  /** Those whose parents have all ended, in a way in which the step does not run. */
  readonly skipped: readonly EndedUnrun[];
}

/** Plans what is stored about new steps, of which every one is behind its parents. */
export function planAddition(
  drafts: readonly Draft[],
  { known, joiners, lastPlace, events }: AdditionSite,
  now: number,
): AdditionPlan {
  const ids = new Map(drafts.map(({ name, id }) => [name, id]));
  const edges = { parents: [] as string[], children: [] as string[] };
  const steps: AddedStep[] = [];
  const skipped: EndedUnrun[] = [];
  for (const [i, draft] of drafts.entries()) {
    const counts = { parentsLeft: 0, ok: 0, bad: 0 };
    for (const name of draft.after) {
      const parent = known.get(name);
      edges.parents.push(ids.get(name) ?? parent!.id);
      edges.children.push(draft.id);
      const weight = parent && parent.outcome !== null ? weightOf(parent.outcome, parent.bad) : 'left';
      if (weight === 'left') counts.parentsLeft += 1;
      else if (weight !== 'neither') counts[weight] += 1;
    }
    const parents = draft.after.length;
    const isDecided = counts.parentsLeft === 0;
    const runs = isDecided && decideStep({ runIf: draft.runIf, parents, ...counts }) === 'run';
    const blocked = !runs || draft.wait !== null || draft.inner !== null || draft.refers;
    if (isDecided && !runs)
      skipped.push({ id: draft.id, state: 'skipped', error: skipReason(false), result: null });
    steps.push({
      ...draft.make(blocked),
      ...{ place: lastPlace + 1 + i, parents, ...counts, released: runs },
      wakeAt: runs ? wakeOf(draft, events, now) : null,
    });
    for (const joiner of joiners) {
      edges.parents.push(draft.id);
      edges.children.push(joiner);
    }
  }
  return { steps, edges, skipped };
}

/** When a step that may run is looked at: its payload is to be resolved, its workflow starts, or it waits for a time or an event. */
function wakeOf(
  { wait, inner, refers, delayMs }: Draft,
  events: ReadonlySet<string>,
  now: number,
): number | null {
  if (inner !== null) return now;
  if (wait === null) return refers ? now + delayMs : null;
  const event = eventOf(wait);
  return event !== null && events.has(event) ? now : wakeAt(wait, now);
}

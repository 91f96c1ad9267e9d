import { type MemberGroup, Placement } from './gang-placement.js';

/**
 * The rule by which gangs start, and by which they hold slots that small jobs would take for ever.
 *
 * Gangs come by age. One starts if slots that are free, and that no older gang holds, match all its members, and the limits
 * have room for all of them. If not, and it has aged, it holds capacity, but only while a whole placement exists on what
 * live workers have in all, busy slots included, beside the targets of older holders and within the limits. So what it
 * waits for does become free, and an impossible gang holds nothing. It holds the free slots of a maximum matching, which
 * the whole placement extends: slots of its target that become free are held at once.
 *
 * To let the oldest hold whatever falls free is not enough: then a gang that could start waits for ever behind one that
 * cannot, and slots stay empty for impossible ones.
 */

/** The slots of live workers that do not drain and that can run the same jobs. */
export interface SlotPool {
  readonly slots: number;
  readonly free: number;
}

/** What a queue or a concurrency key allows, and what it uses. */
export interface Limit {
  readonly most: number;
  readonly running: number;
}

/** How many members of a gang count against a limit, by the index of the limit. */
export type Uses = ReadonlyMap<number, number>;

/** A gang that waits, as the rule sees it. */
export interface WaitingGang {
  readonly groups: readonly MemberGroup[];
  readonly uses: Uses;
  /** Whether it has waited so long that it may hold slots. */
  readonly isAged: boolean;
  /** Whether the rates of its queues and its tenant let it start now. */
  readonly isOpen: boolean;
  /** Whether they let it start so soon that it is worth while to hold slots until then. */
  readonly opensSoon: boolean;
  /** The slots of each pool that it is to have by the last plan; what it holds of them stays with it. */
  readonly target: Target | null;
}

/** How many slots of each pool a gang is to have. */
export type Target = ReadonlyMap<number, number>;

/** What keeps a gang from starting. */
export type Lack =
  /** Members of this group find no free slot. */
  | { readonly kind: 'slot'; readonly group: number }
  | { readonly kind: 'limit'; readonly limit: number }
  | { readonly kind: 'rate' };

/** What becomes of a gang. */
export type GangDecision =
  | { readonly kind: 'start'; readonly placement: Placement }
  | { readonly kind: 'hold'; readonly target: Target; readonly lack: Lack }
  /** It would hold slots, but the rates do not let it start soon: it keeps its tokens only. */
  | { readonly kind: 'await-rate'; readonly lack: Lack }
  | { readonly kind: 'wait'; readonly lack: Lack };

/** Work that yields where it can pause. */
export type Pausing<T> = Generator<void, T, void>;

/** Decides about all waiting gangs, the oldest first. */
export function* planGangs(
  gangs: Iterable<Pausing<WaitingGang>>,
  pools: readonly SlotPool[],
  limits: readonly Limit[],
): Pausing<GangDecision[]> {
  const free = pools.map((pool) => pool.free);
  const held = pools.map(() => 0);
  // Limits become known with the gangs that they are for.
  const started = new Map<number, number>();
  const heldRoom = new Map<number, number>();
  const spare = (pool: number) => Math.max(0, free[pool]! - held[pool]!);
  const capacity = (pool: number) => pools[pool]!.slots - held[pool]!;
  const lacksRoom = (uses: Uses, isAlone: boolean) =>
    firstOf(uses, (limit, count) => {
      const { most, running } = limits[limit]!;
      const others = isAlone ? 0 : running + (started.get(limit) ?? 0);
      return others + (heldRoom.get(limit) ?? 0) + count > most;
    });

  const decisions: GangDecision[] = [];
  for (const gang of gangs) {
    const { groups, uses, isAged, isOpen, opensSoon, target } = yield* gang;
    const placement = new Placement(groups);
    if (target) yield* placement.fill((pool) => Math.min(target.get(pool) ?? 0, spare(pool)));
    yield* placement.fill(spare);
    const lack = lackOf(placement, lacksRoom(uses, false), isOpen);
    if (!lack) {
      for (const [pool, count] of placement.used) free[pool]! -= count;
      addAll(started, uses);
      decisions.push({ kind: 'start', placement });
      continue;
    }
    if (isAged && lacksRoom(uses, true) === null) yield* placement.fill(capacity);
    const couldHold = isAged && lacksRoom(uses, true) === null && placement.isWhole;
    if (couldHold && !opensSoon) decisions.push({ kind: 'await-rate', lack: { kind: 'rate' } });
    else if (couldHold) {
      for (const [pool, count] of placement.used) held[pool]! += count;
      addAll(heldRoom, uses);
      decisions.push({ kind: 'hold', target: placement.used, lack });
    } else decisions.push({ kind: 'wait', lack });
    yield;
  }
  return decisions;
}

/** What keeps a gang from ever starting on these workers and limits, were nothing else running; null if nothing does. */
export function* findObstacle(
  { groups, uses }: Pick<WaitingGang, 'groups' | 'uses'>,
  pools: readonly SlotPool[],
  limits: readonly Limit[],
): Pausing<Lack | null> {
  const placement = new Placement(groups);
  yield* placement.fill((pool) => pools[pool]!.slots);
  return lackOf(
    placement,
    firstOf(uses, (limit, count) => count > limits[limit]!.most),
    true,
  );
}

function lackOf(placement: Placement, limit: number | null, isOpen: boolean): Lack | null {
  if (!placement.isWhole) return { kind: 'slot', group: placement.lacking };
  if (limit !== null) return { kind: 'limit', limit };
  return isOpen ? null : { kind: 'rate' };
}

function firstOf(uses: Uses, holds: (limit: number, count: number) => boolean): number | null {
  for (const [limit, count] of uses) if (holds(limit, count)) return limit;
  return null;
}

function addAll(sums: Map<number, number>, counts: Uses): void {
  for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count);
}

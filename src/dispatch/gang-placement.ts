/** Members of a gang that fit the same pools, so that for a placement they are all the same. */
export interface MemberGroup {
  readonly count: number;
  /** The indexes of the pools whose workers can run them. */
  readonly pools: readonly number[];
}

/** Steps of a search between two pauses: well below a millisecond. */
const STEPS_AT_ONCE = 10_000;

/**
 * A placement of the members of a gang on slots, as many as possible: a maximum flow from groups of members to pools of
 * slots. Slots of one pool are interchangeable, so a placement says how many members of a group go to a pool, not to which
 * slots.
 *
 * It grows by augmenting paths, which move members between pools but never lower how many slots of a pool are used. So
 * what was placed under smaller capacities stays used when the capacities grow.
 */
export class Placement {
  /** The number of slots used of each pool; a pool that is not there has none. */
  readonly used = new Map<number, number>();
  /** By pool, how many members of each group are placed there. */
  private readonly placed = new Map<number, Map<number, number>>();
  private readonly left: number[];
  private steps = 0;

  constructor(private readonly groups: readonly MemberGroup[]) {
    this.left = groups.map(({ count }) => count);
  }

  /** Whether every member has a place. */
  get isWhole(): boolean {
    return this.left.every((count) => count === 0);
  }

  /** The first group with a member that has no place; -1 if the placement is whole. */
  get lacking(): number {
    return this.left.findIndex((count) => count > 0);
  }

  /** How many members of a group are placed in a pool. */
  membersIn(pool: number): ReadonlyMap<number, number> {
    return this.placed.get(pool) ?? NOBODY;
  }

  /** Places as many members as the capacities of the pools allow. It pauses every now and then, which is where it yields. */
  *fill(capacity: (pool: number) => number): Generator<void, void> {
    for (const [group, { pools }] of this.groups.entries()) {
      for (const pool of pools) {
        if (this.left[group] === 0) break;
        const room = capacity(pool) - this.usedOf(pool);
        if (room > 0) this.place(group, pool, Math.min(room, this.left[group]!));
        if (this.isTired()) yield;
      }
    }
    // What a search without success has seen leads nowhere, from whatever group one comes there, until members move.
    let seen = new Search();
    for (let group = 0; group < this.groups.length; group += 1) {
      while (this.left[group]! > 0) {
        const pool = yield* this.search(group, capacity, seen);
        if (pool === null) break;
        this.augment(group, pool, capacity(pool), seen);
        seen = new Search();
      }
    }
  }

  /** The pool with room at the end of the shortest path from the group; null if there is no path. */
  private *search(
    from: number,
    capacity: (pool: number) => number,
    seen: Search,
  ): Generator<void, number | null> {
    if (seen.groups.has(from)) return null;
    seen.groups.set(from, null);
    const queue = [from];
    for (const group of queue) {
      for (const pool of this.groups[group]!.pools) {
        if (this.isTired()) yield;
        if (seen.pools.has(pool)) continue;
        seen.pools.set(pool, group);
        if (this.usedOf(pool) < capacity(pool)) return pool;
        for (const other of this.membersIn(pool).keys()) {
          if (seen.groups.has(other)) continue;
          seen.groups.set(other, pool);
          queue.push(other);
        }
      }
    }
    return null;
  }

  /** Moves members along the path that ends in the pool, as many as possible. */
  private augment(from: number, end: number, capacity: number, { groups, pools }: Search): void {
    let amount = Math.min(this.left[from]!, capacity - this.usedOf(end));
    for (let pool = end; ; ) {
      const group = pools.get(pool)!;
      const before = groups.get(group)!;
      if (before === null) break;
      amount = Math.min(amount, this.placed.get(before)!.get(group)!);
      pool = before;
    }
    this.used.set(end, this.usedOf(end) + amount);
    this.left[from]! -= amount;
    for (let pool = end; ; ) {
      const group = pools.get(pool)!;
      this.add(group, pool, amount);
      const before = groups.get(group)!;
      if (before === null) return;
      this.add(group, before, -amount);
      pool = before;
    }
  }

  private place(group: number, pool: number, count: number): void {
    this.used.set(pool, this.usedOf(pool) + count);
    this.left[group]! -= count;
    this.add(group, pool, count);
  }

  private add(group: number, pool: number, count: number): void {
    let members = this.placed.get(pool);
    if (!members) {
      members = new Map();
      this.placed.set(pool, members);
    }
    const sum = (members.get(group) ?? 0) + count;
    if (sum > 0) members.set(group, sum);
    else members.delete(group);
  }

  private usedOf(pool: number): number {
    return this.used.get(pool) ?? 0;
  }

  private isTired(): boolean {
    this.steps += 1;
    return this.steps % STEPS_AT_ONCE === 0;
  }
}

/** What a search has seen, each with where it came from. */
class Search {
  /** Groups by the pool in which they have members; null where the search began. */
  readonly groups = new Map<number, number | null>();
  /** Pools by the group that fits them. */
  readonly pools = new Map<number, number>();
}

const NOBODY: ReadonlyMap<number, number> = new Map();

import type { Bucket } from '../core/rate.js';
import type { Gang, KeptRates, MemberKind } from './gang.js';
import { freeSlotsOf } from './gang-board.js';
import type { MemberGroup } from './gang-placement.js';
import type { Limit, Pausing, SlotPool, WaitingGang } from './gang-plan.js';
import type { LeaderState } from './leader-state.js';
import type { Origin } from './origin.js';
import type { QueueShare } from './queue-share.js';
import type { WorkerSession } from './worker-session.js';

/** Live workers that do not drain and that can run the same jobs, with their slots. */
interface Pool extends SlotPool {
  readonly key: string;
  readonly sessions: readonly WorkerSession[];
}

/** The limit of a queue, of a concurrency key in it, or of an origin. */
export interface SurveyedLimit extends Limit {
  readonly queue: number;
  readonly key: string | null;
  readonly origin?: string;
}

/** How long before the rates let it start a gang begins to hold slots. */
export const SOON_MS = 1_000;
/** Comparisons of members with pools between two pauses. */
const COMPARED_AT_ONCE = 5_000;

/** The slots and limits of a shard as they are now, in the terms of the rule of gangs. */
export class GangSurvey {
  readonly pools: readonly Pool[];
  readonly limits: SurveyedLimit[] = [];
  private readonly indexes = new Map<string, number>();
  private readonly limitIndexes = new Map<string, number>();
  private readonly poolsOfKinds = new Map<string, readonly number[]>();
  private compared = 0;

  constructor(
    private readonly state: LeaderState,
    private readonly now = state.clock.steady(),
  ) {
    const pools: (Pool & { slots: number; free: number; sessions: WorkerSession[] })[] = [];
    for (const session of state.sessions.values()) {
      if (session.draining) continue;
      const key = session.poolKey;
      let index = this.indexes.get(key);
      if (index === undefined) {
        index = pools.push({ key, slots: 0, free: 0, sessions: [] }) - 1;
        this.indexes.set(key, index);
      }
      const pool = pools[index]!;
      pool.sessions.push(session);
      pool.slots += session.slots;
      pool.free += freeSlotsOf(session, now);
    }
    for (const { isStarting, target } of state.gangs.waiting) {
      if (!isStarting || !target) continue;
      for (const [key, count] of target) {
        const pool = pools[this.indexes.get(key) ?? -1];
        if (pool) pool.free = Math.max(0, pool.free - count);
      }
    }
    this.pools = pools;
  }

  /** A gang in the terms of the rule. */
  *gang(gang: Gang, isAged: boolean): Pausing<WaitingGang> {
    const groups = yield* this.groupsOf(gang);
    const opensAt = this.opensAt(gang);
    return {
      groups,
      uses: this.usesOf(gang),
      isAged,
      isOpen: opensAt <= this.now,
      opensSoon: opensAt <= this.now + SOON_MS,
      target: this.targetOf(gang),
    };
  }

  /** The groups of its members, in the order of its kinds. */
  *groupsOf({ kinds }: Gang): Pausing<MemberGroup[]> {
    const groups: MemberGroup[] = [];
    for (const kind of kinds) groups.push({ count: kind.members.length, pools: yield* this.poolsFor(kind) });
    return groups;
  }

  /** How many of its members count against which limits. */
  usesOf({ rooms, kinds }: Gang): Map<number, number> {
    const uses = new Map<number, number>();
    for (const [queue, { jobs, keys }] of rooms) {
      uses.set(this.limitOf(queue, null), jobs);
      for (const [key, count] of keys) uses.set(this.limitOf(queue, key), count);
    }
    for (const { queue, needs, members } of kinds) {
      const origin = this.state.origins.of(needs);
      if (!origin) continue;
      const limit = this.limitOfOrigin(queue, origin);
      uses.set(limit, (uses.get(limit) ?? 0) + members.length);
    }
    return uses;
  }

  /** When the rates of its queues and its tenant, and the origins that it calls, let it start, on the steady clock. */
  opensAt(gang: Gang): number {
    let opensAt = Number.NEGATIVE_INFINITY;
    for (const origin of this.originsOf(gang)) opensAt = Math.max(opensAt, origin.opensAt(this.now));
    for (const share of this.ratedShares(gang)) {
      for (const bucket of [share.bucket, share.tenant.bucket])
        if (bucket) opensAt = Math.max(opensAt, bucket.opensAt);
    }
    return opensAt;
  }

  /**
   * The rates whose next tokens are to be kept for a gang: those that are closed, and those that it kept before, lest one
   * is used up whenever another opens. One that would be idle for more than a token meanwhile is left to others.
   */
  ratesToKeep(gang: Gang): KeptRates {
    const { queues, ofTenant } = gang.keptRates;
    const opensAt = this.opensAt(gang);
    const isKept = (bucket: Bucket | null, wasKept: boolean) => {
      if (!bucket || (bucket.isOpen(this.now) && !wasKept)) return false;
      const idleMs = opensAt - Math.max(this.now, bucket.opensAt);
      return idleMs <= Math.max(SOON_MS, bucket.rate.perMs / bucket.rate.limit);
    };
    const shares = this.ratedShares(gang);
    const kept = shares.filter(({ bucket, info }) => isKept(bucket, queues.has(info.id)));
    return {
      queues: new Set(kept.map(({ info }) => info.id)),
      ofTenant: shares.some(({ tenant }) => isKept(tenant.bucket, ofTenant)),
    };
  }

  /** The origins that its members call. */
  originsOf({ kinds }: Gang): Origin[] {
    return kinds.flatMap(({ needs }) => this.state.origins.of(needs) ?? []);
  }

  private ratedShares({ rooms, tenant }: Gang): QueueShare[] {
    const { directory, shares } = this.state;
    const hasTenantRate = directory.tenant(tenant).rate !== null;
    const rated = [...rooms.keys()].filter((queue) => hasTenantRate || directory.queue(queue)?.rate);
    return rated.map((queue) => shares.queue(queue));
  }

  private *poolsFor({ queue, needs }: MemberKind): Pausing<readonly number[]> {
    const key = `${queue}/${needs}`;
    const known = this.poolsOfKinds.get(key);
    if (known) return known;
    const info = this.state.directory.queue(queue);
    const fitting: number[] = [];
    if (info) {
      for (const [index, { sessions }] of this.pools.entries()) {
        this.compared += 1;
        if (this.compared % COMPARED_AT_ONCE === 0) yield;
        // Sessions of one pool are all the same here.
        const session = sessions[0]!;
        if (session.serves(info) && this.state.fitness.fits(session, needs)) fitting.push(index);
      }
    }
    this.poolsOfKinds.set(key, fitting);
    return fitting;
  }

  private targetOf({ target }: Gang): ReadonlyMap<number, number> | null {
    if (!target) return null;
    const byIndex = new Map<number, number>();
    for (const [key, count] of target) {
      const index = this.indexes.get(key);
      if (index !== undefined) byIndex.set(index, count);
    }
    return byIndex;
  }

  private limitOf(queue: number, key: string | null): number {
    const name = key === null ? `${queue}` : `${queue}/${key}`;
    const known = this.limitIndexes.get(name);
    if (known !== undefined) return known;
    const index = this.limits.push({ queue, key, ...this.limit(queue, key) }) - 1;
    this.limitIndexes.set(name, index);
    return index;
  }

  private limitOfOrigin(queue: number, { tenant, name, concurrency, running }: Origin): number {
    const index = `${tenant}\n${name}`;
    const known = this.limitIndexes.get(index);
    if (known !== undefined) return known;
    const most = concurrency ?? Number.POSITIVE_INFINITY;
    const added = this.limits.push({ queue, key: null, origin: name, most, running }) - 1;
    this.limitIndexes.set(index, added);
    return added;
  }

  /** Nothing of a paused queue starts. */
  private limit(queue: number, key: string | null): Limit {
    const info = this.state.directory.queue(queue);
    const share = this.state.shares.find(queue);
    if (!info) return { most: 0, running: 0 };
    if (key !== null) return { most: info.keyConcurrency, running: share?.runningOf(key) ?? 0 };
    const most = info.paused ? 0 : (info.concurrency ?? Number.POSITIVE_INFINITY);
    return { most, running: share?.running ?? 0 };
  }
}

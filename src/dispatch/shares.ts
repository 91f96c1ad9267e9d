import type { Clock } from '../core/clock.js';
import type { Bucket } from '../core/rate.js';
import { TimeSlice } from '../core/time-slice.js';
import type { QueueInfo, TenantInfo } from './directory.js';
import type { Origins } from './origins.js';
import { type HeldRoom, QueueShare, type SegmentGroup, type Use } from './queue-share.js';
import { Round } from './round.js';
import { RoundRobin } from './round-robin.js';
import type { Segment } from './segment.js';
import { TenantShare } from './tenant-share.js';

/** Workers that serve queues of the same names; null is every queue. Each group has its own round robins. */
export class WorkerGroup {
  /** The tenants, for workers that serve all of them. */
  readonly tenants = new RoundRobin<TenantShare>();
  workers = 0;

  constructor(readonly names: ReadonlySet<string> | null) {}
}

/** The tenant and the queues that a worker serves. */
export interface WorkerScope {
  /** Null serves all tenants. */
  readonly tenant: string | null;
  /** Null serves all queues. */
  readonly queues: ReadonlySet<string> | null;
}

interface Reserved {
  readonly queues: ReadonlySet<number>;
  readonly tenants: ReadonlySet<string>;
}

const NO_ROOM: HeldRoom = { jobs: 0, keys: new Map() };

/** Groups that are visited between two looks at the clock. */
const VISITED_AT_ONCE = 64;

interface SharesOptions {
  readonly clock: Clock;
  readonly queueInfo: (queue: number) => QueueInfo;
  readonly tenantInfo: (tenant: string) => TenantInfo;
  /** Whether any worker can run jobs with such needs. */
  readonly isServed: (needs: number) => boolean;
  /** Counts the calls of http targets; missing where there are none. */
  readonly origins?: Pick<
    Origins,
    'join' | 'leave' | 'began' | 'beganOutside' | 'resumed' | 'over' | 'isPlainCall'
  >;
  /** Called when a job may start that could not before. */
  readonly onReady: () => void;
}

/**
 * Fair shares: weighted round robin over tenants, and over the queues of a tenant. A queue takes part only while it has
 * a job that may start and its limits leave room, so a queue that is paused, saturated or over its rate costs nothing
 * when a job is chosen.
 */
export class Shares {
  private readonly queues = new Map<number, QueueShare>();
  /** The queues that have jobs with such needs in memory. */
  private readonly queuesByNeeds = new Map<number, Set<QueueShare>>();
  private readonly tenants = new Map<string, TenantShare>();
  private readonly workerGroups = new Map<string, WorkerGroup>();
  private readonly workerGroupsByName = new Map<string, Set<WorkerGroup>>();
  private readonly generalists = new Set<WorkerGroup>();
  /** Caches the key of each worker's set of names, which takes sorting. */
  private readonly workerGroupKeys = new WeakMap<ReadonlySet<string>, string>();
  /** Attempts that have ended, by queue, since somebody took note of them. */
  private ended = new Map<number, number>();
  private stopped = false;
  /** What waiting gangs hold: queues with room, and whose tokens are theirs. */
  private heldQueues = new Set<number>();
  private reserved: Reserved = { queues: new Set(), tenants: new Set() };

  constructor(private readonly options: SharesOptions) {}

  /** How many attempts have ended in each queue since this was last asked. */
  takeEnded(): ReadonlyMap<number, number> {
    const { ended } = this;
    this.ended = new Map();
    return ended;
  }

  /** The share of a queue, if it is in memory. */
  find(queue: number): QueueShare | undefined {
    return this.queues.get(queue);
  }

  /** How many other tenants have a queue that takes part in the round robin now. */
  otherEligibleTenants(besides: TenantShare): number {
    const others = [...this.tenants.values()].filter((tenant) => tenant !== besides);
    return others.filter((tenant) => [...tenant.queues].some((share) => share.listed)).length;
  }

  /** The group of workers that a worker belongs to. */
  groupOf(scope: WorkerScope): WorkerGroup {
    return this.workerGroup(scope.queues);
  }

  /** Visits what waits in memory, of one tenant or of all. It does so in time slices: there may be very much. */
  async eachGroup(
    visit: (share: QueueShare, group: SegmentGroup) => void,
    tenant: string | null = null,
  ): Promise<void> {
    // An iterator of a Map or Set goes on where it was, whatever is added or removed meanwhile.
    const slice = new TimeSlice();
    let visited = 0;
    for (const share of this.sharesOf(tenant)) {
      for (const group of share.groups.values()) {
        visit(share, group);
        visited += 1;
        if (visited % VISITED_AT_ONCE === 0 && slice.isOver) await slice.next();
      }
    }
  }

  /** Visits the queues in memory, of a tenant or of all, in time slices. */
  async eachShare(visit: (share: QueueShare) => void, tenant: string | null = null): Promise<void> {
    const slice = new TimeSlice();
    let visited = 0;
    for (const share of this.sharesOf(tenant)) {
      visit(share);
      visited += 1;
      if (visited % VISITED_AT_ONCE === 0 && slice.isOver) await slice.next();
    }
  }

  private sharesOf(tenant: string | null): Iterable<QueueShare> {
    return tenant === null ? this.queues.values() : (this.tenants.get(tenant)?.queues ?? []);
  }

  /** The share of a queue, made when it is first used. */
  queue(queue: number): QueueShare {
    let share = this.queues.get(queue);
    if (!share) {
      const { clock, queueInfo, isServed, origins } = this.options;
      const info = queueInfo(queue);
      share = new QueueShare(info, this.tenant(info.tenant), {
        isServed,
        isCall: (needs) => origins?.isPlainCall(needs) ?? false,
        onGroup: (share, needs, isThere) => this.noteGroup(share, needs, isThere),
        clock,
      });
      share.tenant.queues.add(share);
      this.queues.set(queue, share);
    }
    return share;
  }

  /** Adds a worker to its group. */
  join(scope: WorkerScope): void {
    this.workerGroup(scope.queues).workers += 1;
  }

  /** Removes a worker from its group; a group without workers is forgotten. */
  leave(scope: WorkerScope): void {
    const workerGroup = this.workerGroup(scope.queues);
    workerGroup.workers -= 1;
    if (workerGroup.workers > 0) return;
    this.workerGroups.delete(this.keyOf(scope.queues));
    this.generalists.delete(workerGroup);
    for (const name of workerGroup.names ?? []) {
      const workerGroups = this.workerGroupsByName.get(name);
      workerGroups?.delete(workerGroup);
      if (workerGroups?.size === 0) this.workerGroupsByName.delete(name);
    }
    for (const tenant of this.tenants.values()) tenant.roundRobins.delete(workerGroup);
  }

  /** Begins a pass over the queues for a worker. */
  round(scope: WorkerScope): Round {
    const workerGroup = this.workerGroup(scope.queues);
    const own =
      scope.tenant === null ? null : (this.tenants.get(scope.tenant) ?? new TenantShare(scope.tenant));
    return new Round(workerGroup, own);
  }

  /** Whether no queue that such a worker serves could start a job, whatever the worker can run. */
  isQuietFor(scope: WorkerScope): boolean {
    const workerGroup = this.workerGroup(scope.queues);
    if (scope.tenant === null) return workerGroup.tenants.size === 0;
    return (this.tenants.get(scope.tenant)?.roundRobins.get(workerGroup)?.size ?? 0) === 0;
  }

  /** The segment whose first job is next for the worker; `now` is on the steady clock. */
  choose(round: Round, canRun: (needs: number) => boolean, now: number): Segment | undefined {
    for (let tenant = round.tenant; tenant; tenant = round.nextTenant()) {
      if (tenant.isReserved || (tenant.bucket && !tenant.bucket.isOpen(now))) continue;
      for (let share = round.queue; share; share = round.nextQueue()) {
        const segment = share.best(canRun);
        if (segment) return segment;
      }
    }
    return undefined;
  }

  /** Counts a chosen job against all limits and quanta. */
  spend(round: Round, share: QueueShare, use: Use, now: number): void {
    const { tenant } = share;
    share.reserve(use);
    share.bucket?.draw(now);
    tenant.bucket?.draw(now);
    round.spend(share);
    this.options.origins?.began(use);
    if (tenant.bucket && !tenant.bucket.isOpen(now)) this.updateTenant(tenant);
  }

  /** Counts a job that an earlier leader started against its limits. */
  reserve(use: Use): void {
    this.queue(use.queue).reserve(use);
    if (!use.isHandedOn) this.options.origins?.resumed(use);
  }

  /** Counts a job that starts without having waited; `calls` if it may have an http target. */
  reserveNew(use: Use, calls: boolean): void {
    this.queue(use.queue).reserve(use);
    if (calls) this.options.origins?.beganOutside(use);
  }

  /** Uncounts a job. With `refund`, for a job that did not start, its token returns to the token buckets too. */
  release(use: Use, refund = false): void {
    if (!use.isHandedOn) this.options.origins?.over(use, refund);
    if (!refund) this.ended.set(use.queue, (this.ended.get(use.queue) ?? 0) + 1);
    const share = this.queues.get(use.queue);
    if (!share) return;
    share.release(use);
    if (refund) share.bucket?.refund();
    this.update(share);
    if (!refund || !share.tenant.bucket) return;
    share.tenant.bucket.refund();
    this.updateTenant(share.tenant);
  }

  /** Counts the members of a gang that is about to start; its buckets may come into debt. */
  spendTogether(uses: readonly Use[], now: number): void {
    const shares = new Set<QueueShare>();
    for (const use of uses) {
      const share = this.queue(use.queue);
      shares.add(share);
      share.reserve(use);
      share.bucket?.draw(now);
      share.tenant.bucket?.draw(now);
      this.options.origins?.beganOutside(use);
    }
    for (const share of shares) {
      this.update(share, false);
      if (share.tenant.bucket) this.updateTenant(share.tenant);
    }
  }

  /** Holds room in the limits of these queues for gangs, instead of what was held before. */
  hold(rooms: ReadonlyMap<number, HeldRoom>): void {
    const before = this.heldQueues;
    this.heldQueues = new Set(rooms.keys());
    for (const queue of before) if (!rooms.has(queue)) this.holdIn(queue, NO_ROOM);
    for (const [queue, room] of rooms) this.holdIn(queue, room);
  }

  private holdIn(queue: number, room: HeldRoom): void {
    const share = this.queue(queue);
    const before = share.held;
    share.hold(room);
    this.update(share, room.jobs < before);
  }

  /** Keeps the next tokens of these queues and tenants for gangs, instead of those before. */
  reserveRates(queues: ReadonlySet<number>, tenants: ReadonlySet<string>): void {
    const before = this.reserved;
    this.reserved = { queues, tenants };
    for (const id of new Set([...before.queues, ...queues])) {
      const share = this.queues.get(id);
      if (!share || share.isReserved === queues.has(id)) continue;
      share.isReserved = queues.has(id);
      this.update(share);
    }
    for (const id of new Set([...before.tenants, ...tenants])) {
      const tenant = this.tenants.get(id);
      if (!tenant || tenant.isReserved === tenants.has(id)) continue;
      tenant.isReserved = tenants.has(id);
      this.updateTenant(tenant);
    }
  }

  /** Adds the queue to the round robins or removes it. Must be called after every change of what it could start. */
  update(share: QueueShare, gained = true): void {
    const isEligible = this.isEligible(share);
    if (isEligible !== share.listed) {
      share.listed = isEligible;
      for (const workerGroup of this.workerGroupsOf(share)) this.enlist(share, workerGroup);
    }
    if (isEligible && gained) this.options.onReady();
    if (share.isEmpty) this.forget(share);
  }

  /** The limits or the pause of a queue changed. */
  queueChanged(queue: number): void {
    const share = this.queues.get(queue);
    if (!share) return;
    share.limitsChanged(this.options.clock);
    this.update(share);
  }

  /** The limits of a tenant changed. */
  tenantChanged(id: string): void {
    const tenant = this.tenants.get(id);
    if (!tenant) return;
    const { clock, tenantInfo } = this.options;
    tenant.limitsChanged(tenantInfo(id), clock);
    this.updateTenant(tenant);
  }

  /** The due jobs in memory with such needs. */
  readyCount(needs: number): number {
    let count = 0;
    for (const share of this.queuesByNeeds.get(needs) ?? [])
      count += share.groups.get(needs)?.readyCount ?? 0;
    return count;
  }

  /** Whether any job in memory has such needs. */
  hasNeeds(needs: number): boolean {
    return this.queuesByNeeds.has(needs);
  }

  /** Workers joined or left, or origins opened or shut, so that jobs with these needs may start now, or may not any more. */
  servingChanged(needs: ReadonlySet<number>, gained = true): void {
    for (const each of needs) {
      for (const share of [...(this.queuesByNeeds.get(each) ?? [])]) {
        share.list(share.group(each));
        this.update(share, gained);
      }
    }
  }

  stop(): void {
    this.stopped = true;
    for (const share of this.queues.values()) share.timer?.cancel();
    for (const tenant of this.tenants.values()) tenant.timer?.cancel();
  }

  private noteGroup(share: QueueShare, needs: number, isThere: boolean): void {
    const shares = this.queuesByNeeds.get(needs);
    if (isThere) {
      if (shares) shares.add(share);
      else {
        this.queuesByNeeds.set(needs, new Set([share]));
        this.options.origins?.join(needs);
      }
      return;
    }
    shares?.delete(share);
    if (shares?.size !== 0) return;
    this.queuesByNeeds.delete(needs);
    this.options.origins?.leave(needs);
  }

  private isEligible(share: QueueShare): boolean {
    if (!share.hasReady || share.info.paused || share.isSaturated || share.isReserved) return false;
    if (!share.bucket || share.bucket.isOpen(this.options.clock.steady())) return true;
    share.timer ??= this.later(share.bucket, () => {
      share.timer = undefined;
      this.update(share);
    });
    return false;
  }

  private later(bucket: Bucket, then: () => void) {
    const { clock } = this.options;
    return clock.after(Math.ceil(bucket.opensAt - clock.steady()), () => {
      if (!this.stopped) then();
    });
  }

  private enlist(share: QueueShare, workerGroup: WorkerGroup): void {
    const { tenant } = share;
    const roundRobin = tenant.roundRobin(workerGroup);
    if (share.listed) roundRobin.add(share);
    else roundRobin.delete(share);
    this.enlistTenant(tenant, workerGroup);
  }

  private enlistTenant(tenant: TenantShare, workerGroup: WorkerGroup): void {
    if (this.isOpen(tenant) && tenant.roundRobin(workerGroup).size > 0) workerGroup.tenants.add(tenant);
    else workerGroup.tenants.delete(tenant);
  }

  private updateTenant(tenant: TenantShare): void {
    for (const workerGroup of tenant.roundRobins.keys()) this.enlistTenant(tenant, workerGroup);
    if (this.isOpen(tenant)) this.options.onReady();
  }

  private isOpen(tenant: TenantShare): boolean {
    if (tenant.isReserved) return false;
    if (!tenant.bucket || tenant.bucket.isOpen(this.options.clock.steady())) return true;
    tenant.timer ??= this.later(tenant.bucket, () => {
      tenant.timer = undefined;
      this.updateTenant(tenant);
    });
    return false;
  }

  private tenant(id: string): TenantShare {
    let tenant = this.tenants.get(id);
    if (!tenant) {
      tenant = new TenantShare(id);
      tenant.resume(this.options.tenantInfo(id), this.options.clock);
      this.tenants.set(id, tenant);
    }
    return tenant;
  }

  private workerGroupsOf(share: QueueShare): WorkerGroup[] {
    return [...this.generalists, ...(this.workerGroupsByName.get(share.info.name) ?? [])];
  }

  private workerGroup(names: ReadonlySet<string> | null): WorkerGroup {
    const key = this.keyOf(names);
    const known = this.workerGroups.get(key);
    if (known) return known;
    const workerGroup = new WorkerGroup(names);
    this.workerGroups.set(key, workerGroup);
    if (names === null) this.generalists.add(workerGroup);
    for (const name of names ?? []) {
      const workerGroups = this.workerGroupsByName.get(name) ?? new Set();
      this.workerGroupsByName.set(name, workerGroups.add(workerGroup));
    }
    for (const share of this.queues.values()) {
      if (share.listed && (names === null || names.has(share.info.name))) this.enlist(share, workerGroup);
    }
    return workerGroup;
  }

  private keyOf(names: ReadonlySet<string> | null): string {
    if (names === null) return '*';
    const known = this.workerGroupKeys.get(names);
    if (known !== undefined) return known;
    const key = [...names].sort().join(',');
    this.workerGroupKeys.set(names, key);
    return key;
  }

  /** Forgets the share of a queue that is empty. */
  private forget(share: QueueShare): void {
    share.timer?.cancel();
    this.queues.delete(share.info.id);
    const { tenant } = share;
    tenant.queues.delete(share);
    // The state of a token bucket must be kept; everything else can be made again.
    if (tenant.queues.size === 0 && !tenant.bucket) this.tenants.delete(tenant.id);
  }
}

import type { Clock, Timer } from '../core/clock.js';
import { type HeapItem, IndexedHeap } from '../core/heap.js';
import { Bucket, isSameRate } from '../core/rate.js';
import type { QueueInfo } from './directory.js';
import type { OriginCall } from './origins.js';
import { type Segment, startsBefore } from './segment.js';
import type { TenantShare } from './tenant-share.js';

/** The segments of one queue whose jobs have the same needs. */
export class SegmentGroup implements HeapItem {
  heapIndex = -1;
  readonly lanes = new Map<number, Segment>();
  /** The segments with a job that may start, ordered by that job. */
  readonly ready = new IndexedHeap<Segment>((a, b) => startsBefore(a.head()!, b.head()!));
  /** Since when no worker serves its ready jobs, on the steady clock; kept by `UnservedJobs`. */
  unservedSince: number | null = null;

  constructor(
    readonly needs: number,
    /** Whether its jobs are calls that need no labels. */
    readonly isCall: boolean,
  ) {}

  /** When the earliest of the jobs that start next was due. */
  get oldestReady(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (const segment of this.lanes.values()) oldest = Math.min(oldest, segment.head()?.runAt ?? oldest);
    return oldest;
  }

  /** The due jobs in memory. */
  get readyCount(): number {
    let count = 0;
    for (const segment of this.lanes.values()) count += segment.readyCount;
    return count;
  }
}

/** The most groups and lanes that are searched for a single job. */
const QUICK_LOOK = 8;

/** How much of its limit a concurrency key uses and gangs hold, and the segments that wait for it. */
interface KeyUse {
  running: number;
  held: number;
  readonly parked: Set<Segment>;
}

/** Room in the limits of a queue that waiting gangs hold: how many of its jobs may not start, in all and by key. */
export interface HeldRoom {
  readonly jobs: number;
  readonly keys: ReadonlyMap<string, number>;
}

/** A job that was chosen or runs, as it counts against the limits of its queue. */
export interface Use extends OriginCall {
  readonly queue: number;
  readonly tenant: string;
  readonly key: string | null;
}

interface QueueShareOptions {
  /** Whether any worker can run jobs with such needs. */
  readonly isServed: (needs: number) => boolean;
  /** Whether jobs with such needs are calls that need no labels: whoever can run one of these can run all. */
  readonly isCall: (needs: number) => boolean;
  /** Called when the queue gets its first job with such needs, and when it no longer has any. */
  readonly onGroup: (share: QueueShare, needs: number, isThere: boolean) => void;
  readonly clock: Clock;
}

/**
 * One queue as choosing sees it: which jobs could start, and what its limits leave. A segment whose first job has a
 * saturated concurrency key is parked, so that it does not hold up other lanes.
 */
export class QueueShare {
  readonly groups = new Map<number, SegmentGroup>();
  /** Groups with a job that may start by the limit of its key and for which there is a worker, but for those of calls. */
  private readonly ready = new Set<SegmentGroup>();
  /** The same of calls: there may be thousands of origins, and a worker that can run one can run all. */
  private readonly readyCalls = new IndexedHeap<SegmentGroup>((a, b) =>
    startsBefore(a.ready.peek()!.head()!, b.ready.peek()!.head()!),
  );
  running = 0;
  /** How many of the jobs that its limit allows are held for gangs. */
  held = 0;
  /** Whether the next tokens of its bucket are for a gang. */
  isReserved = false;
  /** Whether it takes part in the round robins now. */
  listed = false;
  bucket: Bucket | null;
  /** Set while it waits for its token bucket. */
  timer: Timer | undefined;
  private readonly keys = new Map<string, KeyUse>();
  /** The keys of which gangs hold room. */
  private heldKeys: readonly string[] = [];

  constructor(
    readonly info: QueueInfo,
    readonly tenant: TenantShare,
    private readonly options: QueueShareOptions,
  ) {
    this.bucket = info.rate && Bucket.resumed(info.rate, info.fullAt, options.clock, info.debt);
  }

  /** Whether any of its jobs may start by the limit of its key and has a worker. */
  get hasReady(): boolean {
    return this.ready.size > 0 || this.readyCalls.size > 0;
  }

  get isSaturated(): boolean {
    return this.info.concurrency !== null && this.running + this.held >= this.info.concurrency;
  }

  /** Whether none of its jobs or limits is in memory, so that it can be forgotten. */
  get isEmpty(): boolean {
    return this.groups.size === 0 && this.running + this.held === 0 && this.bucket === null;
  }

  /** Whether no other job of the queue could start before a new one. False if that would take long to find out. */
  get isClear(): boolean {
    if (this.hasReady || this.groups.size > QUICK_LOOK) return false;
    for (const { lanes } of this.groups.values()) {
      if (lanes.size > QUICK_LOOK) return false;
      for (const segment of lanes.values()) if (segment.hasUnread) return false;
    }
    return true;
  }

  /** The group of the needs, made when it is first used. */
  group(needs: number): SegmentGroup {
    let group = this.groups.get(needs);
    if (!group) {
      group = new SegmentGroup(needs, this.options.isCall(needs));
      this.groups.set(needs, group);
      this.options.onGroup(this, needs, true);
    }
    return group;
  }

  /** Parks, lists or forgets a segment by its first job. Must be called after every change of its jobs. */
  refresh(segment: Segment): void {
    const group = this.group(segment.needs);
    const head = segment.head();
    segment.parkedAt?.delete(segment);
    segment.parkedAt = null;
    const parking = head && this.parkingOf(head.key);
    if (parking) {
      segment.parkedAt = parking;
      parking.add(segment);
    }
    if (head && !parking) group.ready.update(segment);
    else group.ready.remove(segment);
    if (segment.isForgettable) {
      group.lanes.delete(segment.lane);
      if (group.lanes.size === 0) {
        this.groups.delete(group.needs);
        this.options.onGroup(this, group.needs, false);
      }
    }
    this.list(group);
  }

  /** Lists the group if it has a job that may start and a worker for it. */
  list(group: SegmentGroup): void {
    const isReady = group.ready.size > 0 && this.options.isServed(group.needs);
    if (group.isCall) {
      if (isReady) this.readyCalls.update(group);
      else this.readyCalls.remove(group);
    } else if (isReady) this.ready.add(group);
    else this.ready.delete(group);
  }

  /** The segment whose first job starts next, among those that can be run. */
  best(canRun: (needs: number) => boolean): Segment | undefined {
    let best = this.bestCall(canRun);
    for (const group of this.ready) {
      if (!canRun(group.needs)) continue;
      const segment = this.firstFree(group);
      if (segment && (!best || startsBefore(segment.head()!, best.head()!))) best = segment;
    }
    return best;
  }

  /** The segment with such needs whose first job starts next. */
  bestOf(needs: number): Segment | undefined {
    const group = this.groups.get(needs);
    return group && this.options.isServed(needs) ? this.firstFree(group) : undefined;
  }

  private bestCall(canRun: (needs: number) => boolean): Segment | undefined {
    for (;;) {
      const group = this.readyCalls.peek();
      if (!group || !canRun(group.needs)) return undefined;
      const segment = group.ready.peek()!;
      if (!this.parkingOf(segment.head()!.key)) return segment;
      this.refresh(segment);
    }
  }

  /** Counts a job against the limits. */
  reserve(use: Use): void {
    this.running += 1;
    if (use.key === null) return;
    const key = this.keys.get(use.key);
    if (key) key.running += 1;
    else this.keys.set(use.key, { running: 1, held: 0, parked: new Set() });
  }

  /** Uncounts a job; segments that were parked for its key may be free again. */
  release(use: Use): void {
    this.running -= 1;
    const key = use.key === null ? undefined : this.keys.get(use.key);
    if (!key) return;
    key.running -= 1;
    if (key.running + key.held === 0) this.keys.delete(use.key!);
    for (const segment of [...key.parked]) this.refresh(segment);
  }

  /** Holds room for gangs, instead of what was held before. */
  hold({ jobs, keys }: HeldRoom): void {
    this.held = jobs;
    const before = this.heldKeys;
    this.heldKeys = [...keys.keys()];
    for (const name of before) {
      const key = this.keys.get(name);
      const held = keys.get(name) ?? 0;
      if (!key || held >= key.held) continue;
      key.held = held;
      if (key.running + held === 0) this.keys.delete(name);
      for (const segment of [...key.parked]) this.refresh(segment);
    }
    for (const [name, held] of keys) {
      const key = this.keys.get(name);
      if (key) key.held = held;
      else this.keys.set(name, { running: 0, held, parked: new Set() });
    }
  }

  /** How many jobs of the key run or are being claimed. */
  runningOf(key: string): number {
    return this.keys.get(key)?.running ?? 0;
  }

  /** Applies new limits; running jobs are not affected. A new rate begins with one token. */
  limitsChanged(clock: Clock): void {
    const { rate } = this.info;
    this.timer?.cancel();
    this.timer = undefined;
    if (!rate) this.bucket = null;
    else if (!this.bucket || !isSameRate(this.bucket.rate, rate))
      this.bucket = Bucket.drained(rate, clock.steady());
    for (const key of [...this.keys.values()]) for (const segment of [...key.parked]) this.refresh(segment);
  }

  /** A key may be saturated by a job of another group, so segments are parked here when they come first. */
  private firstFree(group: SegmentGroup): Segment | undefined {
    for (;;) {
      const segment = group.ready.peek();
      if (!segment || !this.parkingOf(segment.head()!.key)) return segment;
      this.refresh(segment);
    }
  }

  private parkingOf(key: string | null): Set<Segment> | undefined {
    const use = key === null ? undefined : this.keys.get(key);
    return use && use.running + use.held >= this.info.keyConcurrency ? use.parked : undefined;
  }
}

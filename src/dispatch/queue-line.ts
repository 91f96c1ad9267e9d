import type { Clock, Timer } from '../core/clock.js';
import { IndexedHeap } from '../core/heap.js';
import { Bucket, isSameRate } from '../core/rate.js';
import type { QueueInfo } from './directory.js';
import { type Shelf, startsBefore } from './shelf.js';
import type { TenantLine } from './tenant-line.js';

/** The shelves of one queue whose jobs need the same; those with a job that may start are in order. */
export class ShelfGroup {
  readonly lanes = new Map<number, Shelf>();
  readonly ready = new IndexedHeap<Shelf>((a, b) => startsBefore(a.head()!, b.head()!));

  constructor(readonly needs: number) {}
}

/** More groups and lanes than this are not gone through for a single job. */
const QUICK_LOOK = 8;

/** How much of its limit a concurrency key uses, and the shelves that wait for it. */
interface KeyUse {
  running: number;
  readonly parked: Set<Shelf>;
}

/** What takes up a queue's limits: a job that was chosen, or runs. */
export interface Use {
  readonly queue: number;
  readonly tenant: string;
  readonly key: string | null;
}

export interface QueueLineOptions {
  /** Whether any worker can run jobs with such needs. */
  readonly isServed: (needs: number) => boolean;
  /** Called when the queue gets its first job with such needs, and when it has none any more. */
  readonly onGroup: (line: QueueLine, needs: number, isThere: boolean) => void;
  readonly clock: Clock;
}

/**
 * One queue as choosing sees it: what could start, and what its limits leave. A job whose concurrency key is
 * saturated is parked with its lane, so it stands in nobody's way.
 */
export class QueueLine {
  readonly groups = new Map<number, ShelfGroup>();
  /** Groups with a job that may start, as far as its key and the workers' abilities go. */
  readonly ready = new Set<ShelfGroup>();
  running = 0;
  /** Whether it takes turns now. */
  listed = false;
  bucket: Bucket | null;
  /** Set while it waits for its bucket. */
  timer: Timer | undefined;
  private readonly keys = new Map<string, KeyUse>();

  constructor(
    readonly info: QueueInfo,
    readonly tenant: TenantLine,
    private readonly options: QueueLineOptions,
  ) {
    this.bucket = info.rate && Bucket.resumed(info.rate, info.fullAt, options.clock);
  }

  get isSaturated(): boolean {
    return this.info.concurrency !== null && this.running >= this.info.concurrency;
  }

  /** Whether nothing of it is in memory, so that it can be forgotten. */
  get isEmpty(): boolean {
    return this.groups.size === 0 && this.running === 0 && this.bucket === null;
  }

  /** Whether no job of it could start before one that comes now, as far as a quick look can tell. */
  get isClear(): boolean {
    if (this.ready.size > 0 || this.groups.size > QUICK_LOOK) return false;
    for (const { lanes } of this.groups.values()) {
      if (lanes.size > QUICK_LOOK) return false;
      for (const shelf of lanes.values()) if (shelf.hasUnread) return false;
    }
    return true;
  }

  group(needs: number): ShelfGroup {
    let group = this.groups.get(needs);
    if (!group) {
      group = new ShelfGroup(needs);
      this.groups.set(needs, group);
      this.options.onGroup(this, needs, true);
    }
    return group;
  }

  /** Puts a shelf where its first job belongs; to be called after every change of what is on it. */
  refresh(shelf: Shelf): void {
    const group = this.group(shelf.needs);
    const head = shelf.head();
    shelf.parkedAt?.delete(shelf);
    shelf.parkedAt = null;
    const parking = head && this.parkingOf(head.key);
    if (parking) {
      shelf.parkedAt = parking;
      parking.add(shelf);
    }
    if (head && !parking) group.ready.update(shelf);
    else group.ready.remove(shelf);
    if (shelf.isForgettable) {
      group.lanes.delete(shelf.lane);
      if (group.lanes.size === 0) {
        this.groups.delete(group.needs);
        this.options.onGroup(this, group.needs, false);
      }
    }
    this.list(group);
  }

  /** A worker came that can run such jobs, or the last one left. */
  list(group: ShelfGroup): void {
    if (group.ready.size > 0 && this.options.isServed(group.needs)) this.ready.add(group);
    else this.ready.delete(group);
  }

  /** The shelf with the job that starts next among those that can be run. */
  best(canRun: (needs: number) => boolean): Shelf | undefined {
    let best: Shelf | undefined;
    for (const group of this.ready) {
      if (!canRun(group.needs)) continue;
      const shelf = this.firstFree(group);
      if (shelf && (!best || startsBefore(shelf.head()!, best.head()!))) best = shelf;
    }
    return best;
  }

  reserve(use: Use): void {
    this.running += 1;
    if (use.key === null) return;
    const key = this.keys.get(use.key);
    if (key) key.running += 1;
    else this.keys.set(use.key, { running: 1, parked: new Set() });
  }

  /** Gives back what a job used; shelves that waited for its key may go on. */
  release(use: Use): void {
    this.running -= 1;
    const key = use.key === null ? undefined : this.keys.get(use.key);
    if (!key) return;
    key.running -= 1;
    if (key.running === 0) this.keys.delete(use.key!);
    for (const shelf of [...key.parked]) this.refresh(shelf);
  }

  /** Jobs of the key that run or are about to. */
  runningOf(key: string): number {
    return this.keys.get(key)?.running ?? 0;
  }

  /** New limits apply from now on; what runs already goes on. A changed rate begins with what is known to be free. */
  limitsChanged(clock: Clock): void {
    const { rate } = this.info;
    this.timer?.cancel();
    this.timer = undefined;
    if (!rate) this.bucket = null;
    else if (!this.bucket || !isSameRate(this.bucket.rate, rate))
      this.bucket = Bucket.drained(rate, clock.steady());
    for (const key of [...this.keys.values()]) for (const shelf of [...key.parked]) this.refresh(shelf);
  }

  /** A key can be used up by a job of another group; its shelf is parked when it comes up. */
  private firstFree(group: ShelfGroup): Shelf | undefined {
    for (;;) {
      const shelf = group.ready.peek();
      if (!shelf || !this.parkingOf(shelf.head()!.key)) return shelf;
      this.refresh(shelf);
    }
  }

  private parkingOf(key: string | null): Set<Shelf> | undefined {
    const use = key === null ? undefined : this.keys.get(key);
    return use && use.running >= this.info.keyConcurrency ? use.parked : undefined;
  }
}

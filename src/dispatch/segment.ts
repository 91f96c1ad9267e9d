import type { HeapItem } from '../core/heap.js';
import type { Cursor, Waiting } from '../store/read-backlog.js';
import { type Entry, EntryHeap } from './entry-heap.js';

export type { Entry } from './entry-heap.js';

interface Position {
  readonly runAt: number;
  readonly id: string;
}

/** The order in which jobs of one segment start. */
export function startsBefore(a: Waiting, b: Waiting): boolean {
  return a.rank !== b.rank ? a.rank < b.rank : isBefore(a, b);
}

/** The order of jobs of one segment and rank. */
export function isBefore(a: Position, b: Position): boolean {
  return a.runAt !== b.runAt ? a.runAt < b.runAt : a.id < b.id;
}

/** How far ahead of its due time an unread job is fetched from the table. */
const FETCH_AHEAD_MS = 2_000;

/**
 * The bounded backlog of one queue, one set of needs and one lane.
 *
 * Invariant: every waiting job of the segment is in memory, or at or after `unread` of its rank, or new enough
 * for the look-back. Jobs that do not fit stay in the table and are read from there in order.
 *
 * Due and upcoming jobs have separate limits: a flood of one kind cannot evict the other, and a page never evicts
 * jobs that the next page would have to read again.
 */
export class Segment implements HeapItem {
  heapIndex = -1;
  /** The segments parked for the same key, while the concurrency key of its first job is saturated. */
  parkedAt: Set<Segment> | null = null;
  private readonly ready = new EntryHeap('ready', startsBefore);
  private readonly upcoming = new EntryHeap('upcoming', isBefore);
  /** By rank, the position from which on the table may hold jobs that memory does not. */
  private readonly unread = new Map<number, Position>();
  /** Ranks whose next page is being read, with the earliest position that was rewound to meanwhile. */
  private readonly reading = new Map<number, Position | null>();

  constructor(
    readonly queue: number,
    readonly needs: number,
    readonly lane: number,
    private readonly limitOf: () => number,
    private readonly onEvict: (entry: Entry) => void,
  ) {}

  private get limit(): number {
    return this.limitOf();
  }

  get readyCount(): number {
    return this.ready.size;
  }

  get size(): number {
    return this.ready.size + this.upcoming.size;
  }

  /** Whether the table may hold jobs of this segment that memory does not. */
  get hasUnread(): boolean {
    return this.unread.size > 0;
  }

  /** Whether nothing is in memory and nothing is known to be in the table. */
  get isForgettable(): boolean {
    return this.size === 0 && this.unread.size === 0 && this.reading.size === 0;
  }

  /** Adds a job, or leaves it in the table as unread; answers whether it is in memory now. */
  add(entry: Entry, now: number, always: boolean): boolean {
    if (!always) {
      if (this.leaveUnread(entry)) return false;
      const heap = entry.runAt <= now ? this.ready : this.upcoming;
      if (heap.size >= this.limit) {
        this.evictLaterHalf(heap);
        if (this.leaveUnread(entry)) return false;
      }
    }
    this.put(entry, now);
    // Retries and releases are added beyond the limit; at twice the limit those that start last are evicted.
    const heap = entry.where === 'ready' ? this.ready : this.upcoming;
    if (always && heap.size > 2 * this.limit) this.evictLaterHalf(heap);
    return entry.where !== ('out' as Entry['where']);
  }

  /** Removes a waiting job from memory. */
  remove(entry: Entry): void {
    if (entry.where === 'ready') this.ready.remove(entry);
    if (entry.where === 'upcoming') this.upcoming.remove(entry);
  }

  /** Visits the jobs in memory that are not due yet. */
  eachUpcoming(visit: (entry: Entry) => void): void {
    this.upcoming.each(visit);
  }

  /** The job that starts next. */
  head(): Entry | undefined {
    return this.ready.peek();
  }

  /** Moves upcoming jobs that have become due to the ready ones; answers whether there were any. */
  ripen(now: number): boolean {
    let moved = false;
    for (let entry = this.upcoming.peek(); entry && entry.runAt <= now; entry = this.upcoming.peek()) {
      this.upcoming.remove(entry);
      this.put(entry, now);
      moved = true;
    }
    if (this.ready.size > this.limit) this.evictLaterHalf(this.ready);
    return moved;
  }

  /** Cursors from which to read a page now: memory runs low, or the table may hold jobs that start earlier. */
  wanted(now: number): Cursor[] {
    const cursors: Cursor[] = [];
    for (const [rank, position] of this.unread) {
      if (this.reading.has(rank)) continue;
      const wants = position.runAt <= now ? this.wantsReady(rank) : this.wantsUpcoming(position, now);
      if (wants) cursors.push({ queue: this.queue, needs: this.needs, lane: this.lane, rank, ...position });
    }
    return cursors;
  }

  /** Marks the jobs of the rank from the position on as unread, even if a page of them is being read. */
  rewind(rank: number, { runAt, id }: Position): void {
    const position = { runAt, id };
    const current = this.unread.get(rank);
    if (!current || isBefore(position, current)) this.unread.set(rank, position);
    const missed = this.reading.get(rank);
    if (missed === null || (missed && isBefore(position, missed))) this.reading.set(rank, position);
  }

  /** Notes that a page from the cursor on is being read. */
  beginRead(cursor: Cursor): void {
    this.reading.set(cursor.rank, null);
  }

  /**
   * Notes that the page was read and its jobs are about to be added; `end` is where the next page begins, null after
   * the last. A position that was rewound to meanwhile stays unread: its jobs may be newer than the page.
   */
  endRead(cursor: Cursor, end: Position | null): void {
    const missed = this.reading.get(cursor.rank);
    this.reading.delete(cursor.rank);
    if (end === null) this.unread.delete(cursor.rank);
    else this.unread.set(cursor.rank, { runAt: end.runAt, id: end.id });
    if (missed) this.rewind(cursor.rank, missed);
  }

  /** Notes that the page could not be read, so that it is wanted again. */
  abandonRead(cursor: Cursor): void {
    this.reading.delete(cursor.rank);
  }

  private put(entry: Entry, now: number): void {
    if (entry.runAt <= now) this.ready.push(entry);
    else this.upcoming.push(entry);
  }

  private leaveUnread(entry: Waiting): boolean {
    const position = this.unread.get(entry.rank);
    if (position === undefined || isBefore(entry, position)) return false;
    this.rewind(entry.rank, entry);
    return true;
  }

  private wantsReady(rank: number): boolean {
    return this.ready.size < this.limit / 2 || this.ready.peek()!.rank > rank;
  }

  private wantsUpcoming(position: Position, now: number): boolean {
    if (this.upcoming.size < this.limit / 2) return true;
    // Only for jobs that start before all in memory: others would evict as many as they bring.
    return position.runAt <= now + FETCH_AHEAD_MS && isBefore(position, this.upcoming.peek()!);
  }

  private evictLaterHalf(heap: EntryHeap): void {
    for (const entry of heap.cut(Math.floor(this.limit / 2))) {
      this.rewind(entry.rank, entry);
      this.onEvict(entry);
    }
  }
}

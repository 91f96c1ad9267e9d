import type { HeapItem } from '../core/heap.js';
import type { Cursor, Waiting } from '../store/read-backlog.js';
import { type Entry, EntryHeap } from './entry-heap.js';

export type { Entry } from './entry-heap.js';

interface Position {
  readonly runAt: number;
  readonly id: string;
}

/** The order in which jobs of one shelf start. */
export function startsBefore(a: Waiting, b: Waiting): boolean {
  return a.rank !== b.rank ? a.rank < b.rank : isBefore(a, b);
}

/** The order of jobs of one shelf and rank. */
export function isBefore(a: Position, b: Position): boolean {
  return a.runAt !== b.runAt ? a.runAt < b.runAt : a.id < b.id;
}

/** How far ahead of its due time a job that was left in the table is fetched. */
const FETCH_AHEAD_MS = 2_000;

/**
 * The bounded backlog of one queue, one set of needs and one lane.
 *
 * Invariant: every waiting job of the shelf is in memory, or at or after `unread` of its rank, or new enough
 * for the look-back. What does not fit is left in the table and read again from there, in order.
 *
 * Due and upcoming jobs each have room of their own: a flood of one kind cannot push out the other, and a page
 * never makes room by dropping what the next page would have to bring back.
 */
export class Shelf implements HeapItem {
  heapIndex = -1;
  /** Where it waits while the concurrency key of its first job is saturated. */
  parkedAt: Set<Shelf> | null = null;
  private readonly ready = new EntryHeap('ready', startsBefore);
  private readonly upcoming = new EntryHeap('upcoming', isBefore);
  private readonly unread = new Map<number, Position>();
  /** Ranks whose next page is on its way, with the first position that became unknown meanwhile. */
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

  /** Whether the table may hold jobs of this shelf that memory does not. */
  get hasUnread(): boolean {
    return this.unread.size > 0;
  }

  /** Whether nothing is in memory and nothing is known to be in the table. */
  get isForgettable(): boolean {
    return this.size === 0 && this.unread.size === 0 && this.reading.size === 0;
  }

  /** Takes a job in, or leaves it to the table; answers whether it is in memory now. */
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
    // Retries and releases come whether there is room or not; what starts last then makes room for them.
    const heap = entry.where === 'ready' ? this.ready : this.upcoming;
    if (always && heap.size > 2 * this.limit) this.evictLaterHalf(heap);
    return entry.where !== ('out' as Entry['where']);
  }

  /** Takes a waiting job out of memory. */
  remove(entry: Entry): void {
    if (entry.where === 'ready') this.ready.remove(entry);
    if (entry.where === 'upcoming') this.upcoming.remove(entry);
  }

  /** The job that starts next, without taking it out. */
  head(): Entry | undefined {
    return this.ready.peek();
  }

  /** Moves what has become due to the ready jobs; answers whether any did. */
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

  /** Where to read on in the table now: when memory runs low, or when better work may lie there. */
  wanted(now: number): Cursor[] {
    const cursors: Cursor[] = [];
    for (const [rank, position] of this.unread) {
      if (this.reading.has(rank)) continue;
      const wants = position.runAt <= now ? this.wantsReady(rank) : this.wantsUpcoming(position, now);
      if (wants) cursors.push({ queue: this.queue, needs: this.needs, lane: this.lane, rank, ...position });
    }
    return cursors;
  }

  /** Marks jobs of the rank from the position on as unknown, also to a page that is on its way. */
  rewind(rank: number, { runAt, id }: Position): void {
    const position = { runAt, id };
    const current = this.unread.get(rank);
    if (!current || isBefore(position, current)) this.unread.set(rank, position);
    const missed = this.reading.get(rank);
    if (missed === null || (missed && isBefore(position, missed))) this.reading.set(rank, position);
  }

  /** A page from the cursor on is being read. */
  beginRead(cursor: Cursor): void {
    this.reading.set(cursor.rank, null);
  }

  /**
   * The page has been read and its jobs are about to be added; `end` is where the next one begins, null after
   * the last. What was marked as unknown meanwhile stays unknown: it may have come too late for the page.
   */
  endRead(cursor: Cursor, end: Position | null): void {
    const missed = this.reading.get(cursor.rank);
    this.reading.delete(cursor.rank);
    if (end === null) this.unread.delete(cursor.rank);
    else this.unread.set(cursor.rank, { runAt: end.runAt, id: end.id });
    if (missed) this.rewind(cursor.rank, missed);
  }

  /** The page could not be read; it will be asked for again. */
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
    // Only for what starts before all that memory holds: fetching more would push out as much as it brings.
    return position.runAt <= now + FETCH_AHEAD_MS && isBefore(position, this.upcoming.peek()!);
  }

  private evictLaterHalf(heap: EntryHeap): void {
    for (const entry of heap.cut(Math.floor(this.limit / 2))) {
      this.rewind(entry.rank, entry);
      this.onEvict(entry);
    }
  }
}

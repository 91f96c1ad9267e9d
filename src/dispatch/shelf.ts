import { Heap } from '../core/heap.js';
import type { Cursor, Waiting } from '../store/read-backlog.js';

/** A waiting job in memory; `where` tells a heap's leftovers from what still counts. */
export interface Entry extends Waiting {
  where: 'ready' | 'upcoming' | 'out';
}

interface Position {
  readonly runAt: number;
  readonly id: string;
}

/** The order in which jobs of one shelf start. */
export function startsBefore(a: Waiting, b: Waiting): boolean {
  return a.rank !== b.rank ? a.rank < b.rank : isBefore(a, b);
}

function isBefore(a: Position, b: Position): boolean {
  return a.runAt !== b.runAt ? a.runAt < b.runAt : a.id < b.id;
}

/** How far ahead of its due time a job that was left in the table is fetched. */
const FETCH_AHEAD_MS = 2_000;
const RANKS = 10;

/**
 * The bounded backlog of one queue and one set of needs.
 *
 * Invariant: every waiting job of the shelf is in memory, or at or after `unread` of its rank, or new enough
 * for the look-back. What does not fit is left in the table and read again from there, in order; jobs that
 * start sooner push out those that start later.
 */
export class Shelf {
  private readonly ready = new Heap<Entry>(startsBefore);
  private readonly upcoming = new Heap<Entry>((a, b) => a.runAt < b.runAt);
  private readonly readyByRank: number[] = new Array(RANKS).fill(0);
  private readonly unread = new Map<number, Position>();
  /** Ranks whose next page is on its way, with the first job that was left to the table meanwhile. */
  private readonly reading = new Map<number, Position | null>();
  private upcomingCount = 0;

  constructor(
    readonly queue: number,
    readonly needs: number,
    private readonly limit: number,
    private readonly onEvict: (entry: Entry) => void,
  ) {}

  get readyCount(): number {
    return this.readyByRank.reduce((sum, count) => sum + count, 0);
  }

  get size(): number {
    return this.readyCount + this.upcomingCount;
  }

  /** Whether the table may hold jobs of this shelf that memory does not. */
  get hasUnread(): boolean {
    return this.unread.size > 0;
  }

  /** Takes a job in, or leaves it to the table; answers whether it is in memory now. */
  add(entry: Entry, now: number, always: boolean): boolean {
    if (!always) {
      if (this.leaveUnread(entry)) return false;
      if (this.size >= this.limit) {
        this.evictLaterHalf(now);
        if (this.leaveUnread(entry)) return false;
      }
    }
    this.put(entry, now);
    return true;
  }

  /** Takes a waiting job out of memory. */
  remove(entry: Entry): void {
    if (entry.where === 'ready') this.readyByRank[entry.rank]! -= 1;
    if (entry.where === 'upcoming') this.upcomingCount -= 1;
    entry.where = 'out';
  }

  /** The job that starts next, without taking it out. */
  head(): Entry | undefined {
    for (;;) {
      const entry = this.ready.peek();
      if (!entry || entry.where === 'ready') return entry;
      this.ready.pop();
    }
  }

  /** Moves what has become due to the ready jobs; answers whether any did. */
  ripen(now: number): boolean {
    let moved = false;
    for (;;) {
      const entry = this.upcoming.peek();
      if (!entry || (entry.where === 'upcoming' && entry.runAt > now)) return moved;
      this.upcoming.pop();
      if (entry.where !== 'upcoming') continue;
      this.upcomingCount -= 1;
      this.put(entry, now);
      moved = true;
    }
  }

  /** When the next upcoming job in memory becomes due. */
  nextDue(): number | null {
    for (;;) {
      const entry = this.upcoming.peek();
      if (!entry) return null;
      if (entry.where === 'upcoming') return entry.runAt;
      this.upcoming.pop();
    }
  }

  /** Where to read on in the table now: when memory runs low, or when better work may lie there. */
  wanted(now: number): Cursor[] {
    const low = this.size < this.limit / 2;
    const cursors: Cursor[] = [];
    for (const [rank, position] of this.unread) {
      if (this.reading.has(rank)) continue;
      const overdue = position.runAt <= now + FETCH_AHEAD_MS && !this.hasReadyUpTo(rank);
      if (low || overdue) cursors.push({ queue: this.queue, needs: this.needs, rank, ...position });
    }
    return cursors;
  }

  /** Marks jobs of the rank from the position on as unknown. */
  rewind(rank: number, position: Position): void {
    const current = this.unread.get(rank);
    if (!current || isBefore(position, current))
      this.unread.set(rank, { runAt: position.runAt, id: position.id });
  }

  /** A page from the cursor on is being read. */
  beginRead(cursor: Cursor): void {
    this.reading.set(cursor.rank, null);
  }

  /**
   * The page has been read and its jobs were added; `end` is where the next one begins, null after the last.
   * A cursor that was rewound meanwhile stays, and so do jobs that came too late for the page.
   */
  endRead(cursor: Cursor, end: Position | null): void {
    const missed = this.reading.get(cursor.rank);
    this.reading.delete(cursor.rank);
    const current = this.unread.get(cursor.rank);
    if (current && !isBefore(current, cursor)) {
      if (end === null) this.unread.delete(cursor.rank);
      else this.unread.set(cursor.rank, { runAt: end.runAt, id: end.id });
    }
    if (missed) this.rewind(cursor.rank, missed);
  }

  /** The page could not be read; it will be asked for again. */
  abandonRead(cursor: Cursor): void {
    this.reading.delete(cursor.rank);
  }

  private put(entry: Entry, now: number): void {
    if (entry.runAt <= now) {
      entry.where = 'ready';
      this.readyByRank[entry.rank]! += 1;
      this.ready.push(entry);
    } else {
      entry.where = 'upcoming';
      this.upcomingCount += 1;
      this.upcoming.push(entry);
    }
  }

  private leaveUnread(entry: Waiting): boolean {
    const position = this.unread.get(entry.rank);
    if (position === undefined || isBefore(entry, position)) return false;
    const missed = this.reading.get(entry.rank);
    if (missed !== undefined && (missed === null || isBefore(entry, missed))) {
      this.reading.set(entry.rank, { runAt: entry.runAt, id: entry.id });
    }
    return true;
  }

  private hasReadyUpTo(rank: number): boolean {
    for (let each = 0; each <= rank; each++) if (this.readyByRank[each]! > 0) return true;
    return false;
  }

  private evictLaterHalf(now: number): void {
    const ready = this.ready.drain().filter((entry) => entry.where === 'ready');
    const upcoming = this.upcoming.drain().filter((entry) => entry.where === 'upcoming');
    ready.sort((a, b) => (startsBefore(a, b) ? -1 : 1));
    upcoming.sort((a, b) => a.runAt - b.runAt);
    const entries = [...ready, ...upcoming];
    this.readyByRank.fill(0);
    this.upcomingCount = 0;
    const half = Math.floor(this.limit / 2);
    for (const entry of entries.slice(0, half)) this.put(entry, now);
    for (const entry of entries.slice(half)) {
      entry.where = 'out';
      this.rewind(entry.rank, entry);
      this.onEvict(entry);
    }
  }
}

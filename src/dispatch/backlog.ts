import { type Clock, EarliestTimer } from '../core/clock.js';
import { Heap } from '../core/heap.js';
import type { JobRow } from '../store/job-row.js';
import type { Cursor, Waiting } from '../store/read-backlog.js';
import type { QueueLine } from './queue-line.js';
import type { Shares } from './shares.js';
import { type Entry, Shelf } from './shelf.js';
import type { Walk } from './walk.js';

export interface BacklogOptions {
  readonly clock: Clock;
  readonly shares: Shares;
  /** Due jobs, and again as many upcoming ones, kept in memory per shelf. */
  readonly shelfLimit: number;
  /** Jobs in memory from which on every shelf keeps fewer. */
  readonly crowdedAt: number;
  /** Whether a job is running, or a statement about it is in flight that is not a claim: then it does not wait. */
  readonly isTaken: (jobId: string) => boolean;
}

/** How many times fewer jobs a shelf keeps when memory is crowded, and when its jobs can only run a few at a time. */
const CROWDED_SHARE = 100;
const LANE_SHARE = 10;
const LEAST = 4;
/** What whole jobs may take up in memory. */
const MAX_REMEMBERED_BYTES = 32 * 1024 * 1024;
/** A job without its payload, at most: its definition may be shared with others. */
const ROW_BYTES = 512;

/** What waits in memory: what comes next on each shelf, what becomes due when, and what is still in the table. */
export class Backlog {
  private readonly known = new Map<string, Entry>();
  /** Bytes of the jobs that memory holds whole. */
  private remembered = 0;
  private readonly unreadShelves = new Set<Shelf>();
  private readonly due = new Heap<{ at: number; shelf: Shelf }>((a, b) => a.at < b.at);
  private readonly dueTimer: EarliestTimer;
  private stopped = false;

  constructor(private readonly options: BacklogOptions) {
    this.dueTimer = new EarliestTimer(options.clock, () => this.ripen());
  }

  get size(): number {
    return this.known.size;
  }

  /** The job in memory, if it waits there. */
  find(jobId: string): Entry | undefined {
    return this.known.get(jobId);
  }

  /**
   * A job that waits, as a hint, a page or the look-back tells; from here on the object is the backlog's. `always`
   * is for jobs that no cursor covers: retries, releases, changes.
   */
  add(waiting: Waiting, always = false): void {
    if (this.stopped || this.options.isTaken(waiting.id)) return;
    const present = this.known.get(waiting.id);
    if (present) {
      if (present.where === 'claiming') return;
      // Even what is always taken in can be old news: the attempt it waited for may be over by now.
      if (present.fence > waiting.fence || (present.fence === waiting.fence && !always)) return;
      this.remove(waiting.id);
    }
    const shelf = this.shelf(waiting);
    const head = shelf.head();
    const entry = waiting as Entry;
    entry.where = 'out';
    const isIn = shelf.add(entry, this.options.clock.now(), always);
    if (shelf.hasUnread) this.unreadShelves.add(shelf);
    if (isIn) {
      this.remember(entry);
      if ((entry.where as Entry['where']) === 'upcoming') this.expectDue(entry.runAt, shelf);
    }
    if (shelf.head() !== head) this.refresh(shelf, true);
  }

  /** Takes a job out of memory because it ended, moved or is about to change. */
  remove(jobId: string): void {
    const entry = this.known.get(jobId);
    if (!entry) return;
    this.forget(entry);
    const shelf = this.shelf(entry);
    shelf.remove(entry);
    // What comes up in its place may be free to start where it was not.
    this.refresh(shelf, true);
  }

  /**
   * The job that is next for the one who walks, counted against its limits. Nobody else gets it, nor can it be added
   * again, until it is `claimed` or `putBack`. `now` is on the steady clock.
   */
  take(walk: Walk, canRun: (needs: number) => boolean, now: number): Entry | undefined {
    const { shares } = this.options;
    const shelf = shares.choose(walk, canRun, now);
    const entry = shelf?.head();
    if (!shelf || !entry) return undefined;
    shelf.remove(entry);
    entry.where = 'claiming';
    shares.spend(walk, shares.line(shelf.queue), entry, now);
    this.refresh(shelf, false);
    return entry;
  }

  /** Whether the job was taken and it is not decided yet what becomes of it. */
  isClaiming(jobId: string): boolean {
    return this.known.get(jobId)?.where === 'claiming';
  }

  /** A job that was taken waits no more. */
  claimed(entry: Entry): void {
    this.forget(entry);
  }

  /** A job that was taken does not start after all; whoever took it sees to it that it waits again. */
  putBack(entry: Entry): void {
    this.forget(entry);
    this.options.shares.release(entry, true);
  }

  /** Makes shelves known whose jobs from the cursor on are still in the table. */
  rewindAll(cursors: readonly Cursor[]): void {
    for (const cursor of cursors) {
      const shelf = this.shelf(cursor);
      shelf.rewind(cursor.rank, cursor);
      this.unreadShelves.add(shelf);
    }
  }

  /** Cursors from which pages are wanted now, at most `max`; each must be ended or abandoned. */
  wantedPages(max: number): Cursor[] {
    const now = this.options.clock.now();
    const cursors: Cursor[] = [];
    for (const shelf of this.unreadShelves) {
      if (!shelf.hasUnread) {
        this.unreadShelves.delete(shelf);
        continue;
      }
      for (const cursor of shelf.wanted(now)) {
        if (cursors.length >= max) return cursors;
        shelf.beginRead(cursor);
        cursors.push(cursor);
      }
    }
    return cursors;
  }

  endRead(cursor: Cursor, end: { runAt: number; id: string } | null): void {
    const shelf = this.shelf(cursor);
    shelf.endRead(cursor, end);
    this.refresh(shelf, false);
  }

  abandonRead(cursor: Cursor): void {
    this.shelf(cursor).abandonRead(cursor);
  }

  /** The shelves of a queue that are in memory. */
  shelvesOf(queue: number): Shelf[] {
    const line = this.options.shares.find(queue);
    return [...(line?.groups.values() ?? [])].flatMap((group) => [...group.lanes.values()]);
  }

  stop(): void {
    this.stopped = true;
    this.dueTimer.stop();
    this.options.shares.stop();
  }

  /** A job stays known by its place in the order; whole only while there is room, else its claim brings it back. */
  private remember(entry: Entry): void {
    this.known.set(entry.id, entry);
    if (!entry.row) return;
    if (this.remembered > MAX_REMEMBERED_BYTES) entry.row = null;
    else this.remembered += sizeOf(entry.row);
  }

  private forget(entry: Entry): void {
    if (!this.known.delete(entry.id) || !entry.row) return;
    this.remembered -= sizeOf(entry.row);
    // The entry may be left over in the order for a while; what was forgotten must not take up memory there.
    entry.row = null;
  }

  private shelf({ queue, needs, lane }: { queue: number; needs: number; lane: number }): Shelf {
    const { lanes } = this.options.shares.line(queue).group(needs);
    let shelf = lanes.get(lane);
    if (!shelf) {
      shelf = new Shelf(
        queue,
        needs,
        lane,
        () => this.limitOf(lane),
        (entry) => this.forget(entry),
      );
      lanes.set(lane, shelf);
    }
    return shelf;
  }

  private limitOf(lane: number): number {
    const { shelfLimit, crowdedAt } = this.options;
    const crowd = this.known.size < crowdedAt ? 1 : CROWDED_SHARE;
    return Math.max(LEAST, Math.floor(shelfLimit / crowd / (lane === 0 ? 1 : LANE_SHARE)));
  }

  /** What is first on the shelf may have changed; `gained` when a job may start that could not before. */
  private refresh(shelf: Shelf, gained: boolean): void {
    const line: QueueLine = this.options.shares.line(shelf.queue);
    line.refresh(shelf);
    this.options.shares.update(line, gained);
  }

  private expectDue(at: number, shelf: Shelf): void {
    this.due.push({ at, shelf });
    this.dueTimer.arm(at);
  }

  private ripen(): void {
    const now = this.options.clock.now();
    for (let next = this.due.peek(); next && next.at <= now; next = this.due.peek()) {
      this.due.pop();
      if (next.shelf.ripen(now)) this.refresh(next.shelf, true);
      if (next.shelf.hasUnread) this.unreadShelves.add(next.shelf);
    }
    this.dueTimer.arm(this.due.peek()?.at ?? null);
  }
}

function sizeOf(row: JobRow): number {
  return ROW_BYTES + row.payload.length + (row.definition.target?.length ?? 0);
}

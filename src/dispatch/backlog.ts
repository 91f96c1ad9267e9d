import { type Clock, EarliestTimer } from '../core/clock.js';
import { Heap } from '../core/heap.js';
import type { JobRow } from '../store/job-row.js';
import type { Cursor, Waiting } from '../store/read-backlog.js';
import type { QueueShare } from './queue-share.js';
import type { Round } from './round.js';
import { type Entry, Segment } from './segment.js';
import type { Shares } from './shares.js';

interface BacklogOptions {
  readonly clock: Clock;
  readonly shares: Shares;
  /** The most due jobs, and the most upcoming ones, that a segment keeps in memory. */
  readonly segmentLimit: number;
  /** The number of jobs in memory above which every segment keeps fewer. */
  readonly crowdedAt: number;
  /** Whether a job runs, or a statement about it other than a claim is in flight; it is not waiting then. */
  readonly isTaken: (jobId: string) => boolean;
}

/** By what the limit of a segment is divided when memory is crowded, and when its jobs have a concurrency key. */
const CROWDED_SHARE = 100;
const LANE_SHARE = 10;
const LEAST = 4;
/** The memory that rows of jobs, with their payloads, may take up. */
const MAX_REMEMBERED_BYTES = 32 * 1024 * 1024;
/** An upper estimate of a row without its payload. */
const ROW_BYTES = 512;

/** The waiting jobs in memory, by segment; when the next becomes due; and which segments have more in the table. */
export class Backlog {
  private readonly known = new Map<string, Entry>();
  /** Bytes of the rows in memory. */
  private remembered = 0;
  private readonly unreadSegments = new Set<Segment>();
  private readonly due = new Heap<{ at: number; segment: Segment }>((a, b) => a.at < b.at);
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
   * Adds a waiting job that a hint, a page or the look-back told of; the backlog owns the object from here on. `always`
   * is for jobs that no cursor covers: retries, releases, changes.
   */
  add(waiting: Waiting, always = false): void {
    if (this.stopped || this.options.isTaken(waiting.id)) return;
    const present = this.known.get(waiting.id);
    if (present) {
      if (present.where === 'claiming') return;
      // Even with `always` the news may be old: the attempt that the job waited for may have ended since.
      if (present.fence > waiting.fence || (present.fence === waiting.fence && !always)) return;
      this.remove(waiting.id);
    }
    const segment = this.segment(waiting);
    const head = segment.head();
    const entry = waiting as Entry;
    entry.where = 'out';
    const isIn = segment.add(entry, this.options.clock.now(), always);
    if (segment.hasUnread) this.unreadSegments.add(segment);
    if (isIn) {
      this.remember(entry);
      if ((entry.where as Entry['where']) === 'upcoming') this.expectDue(entry.runAt, segment);
    }
    if (segment.head() !== head) this.refresh(segment, true);
  }

  /** Removes a job from memory because it ended, moved or is about to change. */
  remove(jobId: string): void {
    const entry = this.known.get(jobId);
    if (!entry) return;
    this.forget(entry);
    const segment = this.segment(entry);
    segment.remove(entry);
    // The next job of the segment may be free to start where this one was not.
    this.refresh(segment, true);
  }

  /**
   * Takes the next job for the worker of the round and counts it against its limits. It can neither be taken nor added
   * again until `claimed` or `abandon` is called for it. `now` is on the steady clock.
   */
  take(round: Round, canRun: (needs: number) => boolean, now: number): Entry | undefined {
    const { shares } = this.options;
    const segment = shares.choose(round, canRun, now);
    const entry = segment?.head();
    if (!segment || !entry) return undefined;
    segment.remove(entry);
    entry.where = 'claiming';
    shares.spend(round, shares.queue(segment.queue), entry, now);
    this.refresh(segment, false);
    return entry;
  }

  /** Whether the job was taken and its claim is still in flight. */
  isClaiming(jobId: string): boolean {
    return this.known.get(jobId)?.where === 'claiming';
  }

  /** Forgets a job that was taken and is claimed now. */
  claimed(entry: Entry): void {
    this.forget(entry);
  }

  /** Forgets a job that was taken and not claimed, and uncounts it; the caller must see that it waits again. */
  abandon(entry: Entry): void {
    this.forget(entry);
    this.options.shares.release(entry, true);
  }

  /** Notes that the jobs of these segments from the cursor on are in the table only. */
  rewindAll(cursors: readonly Cursor[]): void {
    for (const cursor of cursors) {
      const segment = this.segment(cursor);
      segment.rewind(cursor.rank, cursor);
      this.unreadSegments.add(segment);
    }
  }

  /** Up to `max` cursors from which to read a page now; each needs a call of `endRead` or `abandonRead`. */
  wantedPages(max: number): Cursor[] {
    const now = this.options.clock.now();
    const cursors: Cursor[] = [];
    for (const segment of this.unreadSegments) {
      if (!segment.hasUnread) {
        this.unreadSegments.delete(segment);
        continue;
      }
      for (const cursor of segment.wanted(now)) {
        if (cursors.length >= max) return cursors;
        segment.beginRead(cursor);
        cursors.push(cursor);
      }
    }
    return cursors;
  }

  /** The page from the cursor was read and its jobs are about to be added; `end` is where the next page begins. */
  endRead(cursor: Cursor, end: { runAt: number; id: string } | null): void {
    const segment = this.segment(cursor);
    segment.endRead(cursor, end);
    this.refresh(segment, false);
  }

  abandonRead(cursor: Cursor): void {
    this.segment(cursor).abandonRead(cursor);
  }

  /** The segments of a queue that are in memory. */
  segmentsOf(queue: number): Segment[] {
    const share = this.options.shares.find(queue);
    return [...(share?.groups.values() ?? [])].flatMap((group) => [...group.lanes.values()]);
  }

  stop(): void {
    this.stopped = true;
    this.dueTimer.stop();
    this.options.shares.stop();
  }

  /** Keeps the job, and its row only while there is room; without the row its claim reads it from the table. */
  private remember(entry: Entry): void {
    this.known.set(entry.id, entry);
    if (!entry.row) return;
    if (this.remembered > MAX_REMEMBERED_BYTES) entry.row = null;
    else this.remembered += sizeOf(entry.row);
  }

  private forget(entry: Entry): void {
    if (!this.known.delete(entry.id) || !entry.row) return;
    this.remembered -= sizeOf(entry.row);
    // The entry may stay in its heap for a while as a leftover, and must not keep the row in memory there.
    entry.row = null;
  }

  private segment({ queue, needs, lane }: { queue: number; needs: number; lane: number }): Segment {
    const { lanes } = this.options.shares.queue(queue).group(needs);
    let segment = lanes.get(lane);
    if (!segment) {
      segment = new Segment(
        queue,
        needs,
        lane,
        () => this.limitOf(lane),
        (entry) => this.forget(entry),
      );
      lanes.set(lane, segment);
    }
    return segment;
  }

  private limitOf(lane: number): number {
    const { segmentLimit, crowdedAt } = this.options;
    const crowd = this.known.size < crowdedAt ? 1 : CROWDED_SHARE;
    return Math.max(LEAST, Math.floor(segmentLimit / crowd / (lane === 0 ? 1 : LANE_SHARE)));
  }

  /** The first job of the segment may have changed; `gained` when a job may start that could not before. */
  private refresh(segment: Segment, gained: boolean): void {
    const share: QueueShare = this.options.shares.queue(segment.queue);
    share.refresh(segment);
    this.options.shares.update(share, gained);
  }

  private expectDue(at: number, segment: Segment): void {
    this.due.push({ at, segment });
    this.dueTimer.arm(at);
  }

  private ripen(): void {
    const now = this.options.clock.now();
    for (let next = this.due.peek(); next && next.at <= now; next = this.due.peek()) {
      this.due.pop();
      if (next.segment.ripen(now)) this.refresh(next.segment, true);
      if (next.segment.hasUnread) this.unreadSegments.add(next.segment);
    }
    this.dueTimer.arm(this.due.peek()?.at ?? null);
  }
}

function sizeOf(row: JobRow): number {
  return ROW_BYTES + row.payload.length + (row.definition.target?.length ?? 0);
}

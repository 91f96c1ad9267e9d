import { type Clock, EarliestTimer } from '../core/clock.js';
import { Heap } from '../core/heap.js';
import type { JobRow } from '../store/job-row.js';
import type { Cursor, Waiting } from '../store/read-backlog.js';
import type { QueueShare } from './queue-share.js';
import type { Round } from './round.js';
import { type Entry, Segment } from './segment.js';
import type { Shares } from './shares.js';

export interface BacklogOptions {
  readonly clock: Clock;
  readonly shares: Shares;
  /** Due jobs, and again as many upcoming ones, kept in memory per segment. */
  readonly segmentLimit: number;
  /** Jobs in memory from which on every segment keeps fewer. */
  readonly crowdedAt: number;
  /** Whether a job is running, or a statement about it is in flight that is not a claim: then it does not wait. */
  readonly isTaken: (jobId: string) => boolean;
}

/** How many times fewer jobs a segment keeps when memory is crowded, and when its jobs can only run a few at a time. */
const CROWDED_SHARE = 100;
const LANE_SHARE = 10;
const LEAST = 4;
/** What whole jobs may take up in memory. */
const MAX_REMEMBERED_BYTES = 32 * 1024 * 1024;
/** A job without its payload, at most: its definition may be shared with others. */
const ROW_BYTES = 512;

/** What waits in memory: what comes next on each segment, what becomes due when, and what is still in the table. */
export class Backlog {
  private readonly known = new Map<string, Entry>();
  /** Bytes of the jobs that memory holds whole. */
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

  /** Takes a job out of memory because it ended, moved or is about to change. */
  remove(jobId: string): void {
    const entry = this.known.get(jobId);
    if (!entry) return;
    this.forget(entry);
    const segment = this.segment(entry);
    segment.remove(entry);
    // What comes up in its place may be free to start where it was not.
    this.refresh(segment, true);
  }

  /**
   * The job that is next for the one who walks, counted against its limits. Nobody else gets it, nor can it be added
   * again, until it is `claimed` or `putBack`. `now` is on the steady clock.
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

  /** Makes segments known whose jobs from the cursor on are still in the table. */
  rewindAll(cursors: readonly Cursor[]): void {
    for (const cursor of cursors) {
      const segment = this.segment(cursor);
      segment.rewind(cursor.rank, cursor);
      this.unreadSegments.add(segment);
    }
  }

  /** Cursors from which pages are wanted now, at most `max`; each must be ended or abandoned. */
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

  /** What is first on the segment may have changed; `gained` when a job may start that could not before. */
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

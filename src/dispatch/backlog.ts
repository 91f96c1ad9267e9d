import type { Clock, Timer } from '../core/clock.js';
import { Heap } from '../core/heap.js';
import type { Cursor, Waiting } from '../store/read-backlog.js';
import { type Entry, Shelf, startsBefore } from './shelf.js';

/** The waiting jobs of one queue, by what they need. */
export interface QueueBacklog {
  readonly queue: number;
  readonly shelves: Map<number, Shelf>;
}

export interface BacklogOptions {
  readonly clock: Clock;
  /** Due jobs, and again as many upcoming ones, kept in memory per queue and needs. */
  readonly shelfLimit: number;
  /** Whether a job is running, or a statement about it is in flight: then it does not wait. */
  readonly isTaken: (jobId: string) => boolean;
  /** Called when a job may start that could not before. */
  readonly onReady: () => void;
}

/** What waits in memory: which queues have due jobs, what comes next in each, and what becomes due when. */
export class Backlog {
  private readonly queues = new Map<number, QueueBacklog>();
  private readonly known = new Map<string, Entry>();
  /** Queues that may have due jobs; taking turns means moving to the end. */
  private readonly readyQueues = new Set<QueueBacklog>();
  private readonly unreadShelves = new Set<Shelf>();
  private readonly due = new Heap<{ at: number; shelf: Shelf }>((a, b) => a.at < b.at);
  private timer: Timer | undefined;
  private timerAt = Number.POSITIVE_INFINITY;
  private stopped = false;

  constructor(private readonly options: BacklogOptions) {}

  get size(): number {
    return this.known.size;
  }

  /** The job in memory, if it waits there. */
  find(jobId: string): Entry | undefined {
    return this.known.get(jobId);
  }

  /** Queues with due jobs, in the order of their turns. */
  get turns(): Iterable<QueueBacklog> {
    return this.readyQueues;
  }

  queueBacklog(queue: number): QueueBacklog | undefined {
    return this.queues.get(queue);
  }

  /**
   * A job that waits, as a hint, a page or the look-back tells. `always` is for jobs that no cursor covers:
   * retries, releases, changes.
   */
  add(waiting: Waiting, always = false): void {
    if (this.stopped || this.options.isTaken(waiting.id)) return;
    const present = this.known.get(waiting.id);
    if (present) {
      // Even what is always taken in can be old news: the attempt it waited for may be over by now.
      if (present.fence > waiting.fence || (present.fence === waiting.fence && !always)) return;
      this.remove(waiting.id);
    }
    const shelf = this.shelf(waiting.queue, waiting.needs);
    const entry: Entry = { ...waiting, where: 'out' };
    const now = this.options.clock.now();
    if (!shelf.add(entry, now, always)) {
      this.unreadShelves.add(shelf);
      return;
    }
    if (shelf.hasUnread) this.unreadShelves.add(shelf);
    this.known.set(entry.id, entry);
    if ((entry.where as Entry['where']) === 'ready') this.markReady(shelf);
    else this.expectDue(entry.runAt, shelf);
  }

  /** Takes a job out of memory because it ended, moved or is about to change. */
  remove(jobId: string): void {
    const entry = this.known.get(jobId);
    if (!entry) return;
    this.known.delete(jobId);
    this.shelf(entry.queue, entry.needs).remove(entry);
  }

  /** The best due job of a queue among the needs that fit; taken out of memory. */
  take(queue: QueueBacklog, fits: (needs: number) => boolean): Entry | undefined {
    let best: Entry | undefined;
    let left = false;
    for (const shelf of queue.shelves.values()) {
      const head = shelf.head();
      if (!head) continue;
      left = true;
      if (fits(shelf.needs) && (!best || startsBefore(head, best))) best = head;
    }
    if (!left) this.readyQueues.delete(queue);
    if (best) {
      this.known.delete(best.id);
      queue.shelves.get(best.needs)!.remove(best);
      this.readyQueues.delete(queue);
      this.readyQueues.add(queue);
    }
    return best;
  }

  /** Makes shelves known whose jobs are all still in the table. */
  rewindAll(
    shelves: readonly { queue: number; needs: number; rank: number }[],
    position: { runAt: number; id: string },
  ): void {
    for (const { queue, needs, rank } of shelves) {
      const shelf = this.shelf(queue, needs);
      shelf.rewind(rank, position);
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
    this.shelf(cursor.queue, cursor.needs).endRead(cursor, end);
  }

  abandonRead(cursor: Cursor): void {
    this.shelf(cursor.queue, cursor.needs).abandonRead(cursor);
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
  }

  private shelf(queue: number, needs: number): Shelf {
    let backlog = this.queues.get(queue);
    if (!backlog) {
      backlog = { queue, shelves: new Map() };
      this.queues.set(queue, backlog);
    }
    let shelf = backlog.shelves.get(needs);
    if (!shelf) {
      shelf = new Shelf(queue, needs, this.options.shelfLimit, (entry) => this.known.delete(entry.id));
      backlog.shelves.set(needs, shelf);
    }
    return shelf;
  }

  private markReady(shelf: Shelf): void {
    this.readyQueues.add(this.queues.get(shelf.queue)!);
    this.options.onReady();
  }

  private expectDue(at: number, shelf: Shelf): void {
    this.due.push({ at, shelf });
    this.arm();
  }

  private arm(): void {
    const next = this.due.peek();
    if (!next || next.at >= this.timerAt) return;
    this.timer?.cancel();
    this.timerAt = next.at;
    this.timer = this.options.clock.at(next.at, () => this.ripen());
  }

  private ripen(): void {
    this.timerAt = Number.POSITIVE_INFINITY;
    const now = this.options.clock.now();
    for (let next = this.due.peek(); next && next.at <= now; next = this.due.peek()) {
      this.due.pop();
      if (next.shelf.ripen(now)) this.markReady(next.shelf);
      if (next.shelf.hasUnread) this.unreadShelves.add(next.shelf);
    }
    this.arm();
  }
}

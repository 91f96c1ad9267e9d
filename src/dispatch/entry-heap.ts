import { Heap } from '../core/heap.js';
import type { JobRow } from '../store/job-row.js';
import type { Waiting } from '../store/read-backlog.js';

/** A waiting job in memory. */
export interface Entry extends Waiting {
  row?: JobRow | null;
  /** The heap that holds it, that its claim is in flight, or that it was removed; a heap ignores entries of others. */
  where: 'ready' | 'upcoming' | 'claiming' | 'out';
}

/** Below this number of entries leftovers are not cleared away. */
const FEW = 64;

/**
 * A priority queue from which any entry can be removed in O(1): it stays as a leftover until it comes first.
 *
 * Jobs mostly arrive in the order in which they start. Those form a sorted run with O(1) for `push` and `peek`; only
 * jobs that arrive out of order go through a heap.
 */
export class EntryHeap {
  private run: Entry[] = [];
  /** The index at which the run begins; entries before it were removed. */
  private start = 0;
  private readonly strays: Heap<Entry>;
  private count = 0;

  constructor(
    private readonly where: 'ready' | 'upcoming',
    private readonly before: (a: Waiting, b: Waiting) => boolean,
  ) {
    this.strays = new Heap<Entry>(before);
  }

  get size(): number {
    return this.count;
  }

  push(entry: Entry): void {
    entry.where = this.where;
    this.count += 1;
    const last = this.run.at(-1);
    if (!last || this.run.length === this.start || this.before(last, entry)) this.run.push(entry);
    else this.strays.push(entry);
  }

  /** Visits all entries, in no order. */
  each(visit: (entry: Entry) => void): void {
    for (let i = this.start; i < this.run.length; i += 1) {
      const entry = this.run[i]!;
      if (entry.where === this.where) visit(entry);
    }
    this.strays.each((entry) => {
      if (entry.where === this.where) visit(entry);
    });
  }

  peek(): Entry | undefined {
    const first = this.firstOfRun();
    const stray = this.firstStray();
    return first && (!stray || this.before(first, stray)) ? first : stray;
  }

  /** Removes an entry of this heap. */
  remove(entry: Entry): void {
    entry.where = 'out';
    this.count -= 1;
    // Leftovers must not pile up when jobs are cancelled or changed again and again behind the first one.
    const held = this.run.length - this.start + this.strays.size;
    if (held > FEW && held > 2 * this.count) this.refill(this.inOrder());
  }

  /** Keeps the first `count` entries; removes the others and answers with them. */
  cut(count: number): Entry[] {
    const entries = this.inOrder();
    this.refill(entries.slice(0, count));
    const rest = entries.slice(count);
    for (const entry of rest) entry.where = 'out';
    return rest;
  }

  private firstOfRun(): Entry | undefined {
    while (this.start < this.run.length) {
      const entry = this.run[this.start]!;
      if (entry.where === this.where) {
        // Dropped when it is the larger part of the array, so that each entry is copied O(1) times.
        if (this.start > FEW && this.start * 2 > this.run.length) this.dropRemoved();
        return entry;
      }
      this.start += 1;
    }
    this.dropRemoved();
    return undefined;
  }

  private firstStray(): Entry | undefined {
    for (;;) {
      const entry = this.strays.peek();
      if (!entry || entry.where === this.where) return entry;
      this.strays.pop();
    }
  }

  private dropRemoved(): void {
    if (this.start === 0) return;
    this.run = this.run.slice(this.start);
    this.start = 0;
  }

  private inOrder(): Entry[] {
    const entries = [...this.run.slice(this.start), ...this.strays.drain()];
    return entries.filter((entry) => entry.where === this.where).sort((a, b) => (this.before(a, b) ? -1 : 1));
  }

  private refill(entries: readonly Entry[]): void {
    this.run = [...entries];
    this.start = 0;
    this.count = entries.length;
  }
}

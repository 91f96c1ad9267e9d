import { Heap } from '../core/heap.js';
import type { JobRow } from '../store/job-row.js';
import type { Waiting } from '../store/read-backlog.js';

/** A waiting job in memory; `where` tells leftovers from what still counts, and that a claim is being made. */
export interface Entry extends Waiting {
  row?: JobRow | null;
  where: 'ready' | 'upcoming' | 'claiming' | 'out';
}

/** Leftovers below this number are not worth clearing away. */
const FEW = 64;

/**
 * Entries in order, from which any can be taken out: it stays behind as a leftover until it comes up.
 *
 * Jobs mostly come in the order in which they start. Those that do form a run, to which adding and from which
 * taking costs nothing; only what comes out of order goes through a heap.
 */
export class EntryHeap {
  private run: Entry[] = [];
  /** Where the run begins; what lies before has been passed. */
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
    this.place(entry);
  }

  peek(): Entry | undefined {
    const first = this.firstOfRun();
    const stray = this.firstStray();
    return first && (!stray || this.before(first, stray)) ? first : stray;
  }

  /** Takes an entry of this heap out, wherever in the order it is. */
  remove(entry: Entry): void {
    entry.where = 'out';
    this.count -= 1;
    // Jobs that are cancelled or changed without end while others stay first must not pile up.
    const held = this.run.length - this.start + this.strays.size;
    if (held > FEW && held > 2 * this.count) this.refill(this.inOrder());
  }

  /** Keeps the first `count` entries; answers with the others, which are out. */
  cut(count: number): Entry[] {
    const entries = this.inOrder();
    this.refill(entries.slice(0, count));
    const rest = entries.slice(count);
    for (const entry of rest) entry.where = 'out';
    return rest;
  }

  private place(entry: Entry): void {
    const last = this.run.at(-1);
    if (!last || this.run.length === this.start || this.before(last, entry)) this.run.push(entry);
    else this.strays.push(entry);
  }

  private firstOfRun(): Entry | undefined {
    while (this.start < this.run.length) {
      const entry = this.run[this.start]!;
      if (entry.where === this.where) {
        // What was passed goes when it is the larger part, so that it costs each entry one move at most.
        if (this.start > FEW && this.start * 2 > this.run.length) this.forgetPassed();
        return entry;
      }
      this.start += 1;
    }
    this.forgetPassed();
    return undefined;
  }

  private firstStray(): Entry | undefined {
    for (;;) {
      const entry = this.strays.peek();
      if (!entry || entry.where === this.where) return entry;
      this.strays.pop();
    }
  }

  private forgetPassed(): void {
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

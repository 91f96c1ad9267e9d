import { Heap } from '../core/heap.js';
import type { Waiting } from '../store/read-backlog.js';

/** A waiting job in memory; `where` tells a heap's leftovers from what still counts. */
export interface Entry extends Waiting {
  where: 'ready' | 'upcoming' | 'out';
}

/** Leftovers below this number are not worth clearing away. */
const FEW = 64;

/** Entries in order, from which any can be taken out: it stays behind as a leftover until it comes up. */
export class EntryHeap {
  private readonly heap: Heap<Entry>;
  private count = 0;

  constructor(
    private readonly where: 'ready' | 'upcoming',
    private readonly before: (a: Waiting, b: Waiting) => boolean,
  ) {
    this.heap = new Heap<Entry>(before);
  }

  get size(): number {
    return this.count;
  }

  push(entry: Entry): void {
    entry.where = this.where;
    this.count += 1;
    this.heap.push(entry);
  }

  peek(): Entry | undefined {
    for (;;) {
      const entry = this.heap.peek();
      if (!entry || entry.where === this.where) return entry;
      this.heap.pop();
    }
  }

  /** Takes an entry of this heap out, wherever in the order it is. */
  remove(entry: Entry): void {
    entry.where = 'out';
    this.count -= 1;
    // Jobs that are cancelled or changed without end while others stay first must not pile up.
    if (this.heap.size > FEW && this.heap.size > 2 * this.count) this.refill(this.drain());
  }

  /** Keeps the first `count` entries; answers with the others, which are out. */
  cut(count: number): Entry[] {
    const entries = this.drain().sort((a, b) => (this.before(a, b) ? -1 : 1));
    this.refill(entries.slice(0, count));
    const rest = entries.slice(count);
    for (const entry of rest) entry.where = 'out';
    return rest;
  }

  private drain(): Entry[] {
    return this.heap.drain().filter((entry) => entry.where === this.where);
  }

  private refill(entries: readonly Entry[]): void {
    for (const entry of entries) this.heap.push(entry);
    this.count = entries.length;
  }
}

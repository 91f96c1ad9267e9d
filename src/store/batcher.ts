import { bisect } from './bisect.js';
import { isDatabaseBusy } from './database.js';

/** The most items, and the most bytes, of one batch; a single item may have more bytes. */
interface BatchLimits {
  readonly items: number;
  readonly bytes: number;
}

/**
 * A batch that takes longer is too large: others wait behind it, and twice its size would come close to the deadline.
 */
const SLOW_MS = 250;
/** By what the next batch is divided after one met its deadline, which cost the whole of that time. */
const SMALLER_AFTER_FAILURE = 4;
/** Consecutive batches of one item that may time out; after that the database is at fault, not the items. */
const MAX_STUCK = 3;

/**
 * Adapts the size of batches. Code that moves many rows does it in batches that are bounded in items, bytes and time:
 * they shrink, down to one item, after one took long or met its deadline, and grow again while they are quick. An item
 * that fails alone is set aside, so that it does not hold up the others.
 */
export class Batcher<T> {
  private items: number;
  private bytes: number;

  constructor(
    private readonly limits: BatchLimits,
    private readonly bytesOf: (item: T) => number,
  ) {
    this.items = limits.items;
    this.bytes = limits.bytes;
  }

  /** The most items of the next batch. */
  get maxItems(): number {
    return this.items;
  }

  /** How many items from the given index on go into the next batch: at least one if there is any. */
  count(items: readonly T[], from = 0): number {
    let bytes = 0;
    let count = 0;
    for (let i = from; i < items.length && count < this.items; i++) {
      bytes += this.bytesOf(items[i]!);
      if (count > 0 && bytes > this.bytes) break;
      count += 1;
    }
    return count;
  }

  /** Notes that a batch succeeded. The next one may be larger if this one was full and quick. */
  worked(batch: readonly T[], ms = 0): void {
    if (ms > SLOW_MS) this.shrink(batch, 2);
    else if (this.items === this.limits.items && this.bytes === this.limits.bytes) return;
    else if (batch.length >= this.items || this.bytesOfAll(batch) >= this.bytes / 2) {
      this.items = Math.min(this.limits.items, this.items * 2);
      this.bytes = Math.min(this.limits.bytes, this.bytes * 2);
    }
  }

  /** Notes that a batch met its deadline. */
  failed(batch: readonly T[]): void {
    this.shrink(batch, SMALLER_AFTER_FAILURE);
  }

  private shrink(batch: readonly T[], by: number): void {
    this.items = Math.max(1, Math.floor(batch.length / by));
    this.bytes = Math.max(1, Math.floor(Math.min(this.bytes, this.bytesOfAll(batch)) / by));
  }

  private bytesOfAll(batch: readonly T[]): number {
    return batch.reduce((sum, item) => sum + this.bytesOf(item), 0);
  }

  /**
   * Processes the items batch by batch while `goOn` holds; answers how many were processed. `work` may get items again
   * that it has processed. `setAside` gets each item that fails alone, by its data or by a timeout.
   */
  async run(
    items: readonly T[],
    work: (batch: readonly T[]) => Promise<void>,
    setAside: (item: T, error: unknown) => unknown,
    goOn: () => boolean = () => true,
  ): Promise<number> {
    let from = 0;
    let stuck = 0;
    while (from < items.length && goOn()) {
      const batch = items.slice(from, from + this.count(items, from));
      const startedAt = performance.now();
      try {
        await bisect(batch, (part) => work(part).then(() => []), setAside);
        this.worked(batch, performance.now() - startedAt);
        stuck = 0;
      } catch (error) {
        if (!isDatabaseBusy(error)) throw error;
        this.failed(batch);
        if (batch.length > 1) continue;
        stuck += 1;
        if (stuck > MAX_STUCK) throw error;
        await setAside(batch[0]!, error);
      }
      from += batch.length;
    }
    return from;
  }
}

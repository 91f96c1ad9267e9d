import { bisect } from './bisect.js';
import { isDatabaseBusy } from './database.js';

/** What may go into one batch: a number of items, and of bytes if there is more than one item. */
export interface BatchLimits {
  readonly items: number;
  readonly bytes: number;
}

/** A batch that takes longer is too large: others wait behind it, and one of twice its size would near the deadline. */
const SLOW_MS = 250;
/** A batch that met its deadline has cost all of it, so the next one is much smaller. */
const SMALLER_AFTER_FAILURE = 4;
/** Items in a row that took too long although each was alone: then it is not they who are at fault. */
const MAX_STUCK = 3;

/**
 * As much as fits. Whatever moves many rows does it in batches that are bounded in number, bytes and time: smaller after
 * one took long or met its deadline, one by one at last, and growing again while they are quick. What fails alone is set
 * aside, so that it holds up nothing behind it.
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

  /** Most items of the next batch. */
  get maxItems(): number {
    return this.items;
  }

  /** How many items, from the given place on, the next batch takes: at least one where there is one. */
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

  /** A batch went through. The next one may be larger if this one was as large as it could be. */
  worked(batch: readonly T[], ms = 0): void {
    if (ms > SLOW_MS) this.shrink(batch, 2);
    else if (this.items === this.limits.items && this.bytes === this.limits.bytes) return;
    else if (batch.length >= this.items || this.bytesOfAll(batch) >= this.bytes / 2) {
      this.items = Math.min(this.limits.items, this.items * 2);
      this.bytes = Math.min(this.limits.bytes, this.bytes * 2);
    }
  }

  /** A batch took too long and was given up. */
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
   * Runs all the items, batch after batch, while `goOn`; answers how many were dealt with. `work` may be given items
   * again that it has dealt with. `setAside` gets what fails alone: its data are at fault, or the time did not suffice.
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

import { TimerClock } from '../core/clock.js';

/**
 * The database's clock, carried forward by this machine's monotonic time between samples. A sample counts from
 * when it was received, so the result lags the truth by at most the way back and nothing ever starts early.
 * Of the newest samples the one with the shortest way back is the best, which is the largest offset.
 */
export class DatabaseClock extends TimerClock {
  private readonly offsets: number[] = [];
  private offset: number;

  constructor(databaseNow: number) {
    super(() => Math.floor(performance.now() + this.offset));
    this.offset = databaseNow - performance.now();
    this.offsets.push(this.offset);
  }

  /** To be called at once when an answer that carries the database's time arrives. */
  sample(databaseNow: number): void {
    this.offsets.push(databaseNow - performance.now());
    if (this.offsets.length > 8) this.offsets.shift();
    this.offset = Math.max(...this.offsets);
  }
}

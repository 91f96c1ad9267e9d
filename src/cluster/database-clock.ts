import { TimerClock } from '../core/clock.js';
import { greatest } from '../core/long-lists.js';

/** More than two clocks can drift apart between two samples; a larger difference means that a clock was set. */
const MAX_DRIFT_MS = 100;

/**
 * The database's clock, extrapolated between samples with this machine's monotonic clock. A sample is taken to be made
 * when it was received, so the result lags behind the database by the way back of the answer, and nothing starts early.
 * The best of the last samples is the one with the shortest way back, which is the one with the largest offset.
 */
export class DatabaseClock extends TimerClock {
  private readonly offsets: number[] = [];
  private offset: number;

  constructor(databaseNow: number) {
    super(() => Math.floor(performance.now() + this.offset));
    this.offset = databaseNow - performance.now();
    this.offsets.push(this.offset);
  }

  /**
   * To be called as soon as an answer with the database's time arrives. A sample that is older than its round trip can
   * explain means that the database's clock was set back. Then the older samples are dropped: they would start jobs
   * early.
   */
  sample(databaseNow: number, roundTripMs: number): void {
    const offset = databaseNow - performance.now();
    if (offset < this.offset - roundTripMs - MAX_DRIFT_MS) this.offsets.length = 0;
    this.offsets.push(offset);
    if (this.offsets.length > 8) this.offsets.shift();
    this.offset = greatest(this.offsets);
  }
}

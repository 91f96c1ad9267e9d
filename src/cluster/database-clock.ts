import { TimerClock } from '../core/clock.js';
import { greatest } from '../core/long-lists.js';

/** What the drift between two clocks can come to between samples, generously. */
const STEP_MS = 100;

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

  /**
   * To be called at once when an answer that carries the database's time arrives. A sample that lies further
   * back than its way there and back explains is the database's clock having been set back: then older samples
   * say nothing any more, and holding on to them would start jobs early.
   */
  sample(databaseNow: number, roundTripMs: number): void {
    const offset = databaseNow - performance.now();
    if (offset < this.offset - roundTripMs - STEP_MS) this.offsets.length = 0;
    this.offsets.push(offset);
    if (this.offsets.length > 8) this.offsets.shift();
    this.offset = greatest(this.offsets);
  }
}

import { performance } from 'node:perf_hooks';
import { TimerClock } from '../core/clock.js';

/** `performance.now()` counts from the start of its thread; this offset makes the time the same in all threads. */
const START_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/**
 * The process's monotonic clock in milliseconds, for durations and deadlines inside a worker. All threads read the
 * same time, so they can exchange timestamps.
 */
export const monotonic = new TimerClock(() => START_MS + performance.now());

/** Clocks of two machines drift apart by less than this fraction of the time since they were compared. */
const DRIFT = 1e-4;

/**
 * An estimate of the server's clock: the offset that the best recent comparison gave, added to monotonic time. The
 * local wall clock does not matter; it may be wrong or jump.
 */
export class ServerClock {
  readonly #monotonic: () => number;
  #offsetMs: number;
  #errorMs = Number.POSITIVE_INFINITY;
  #comparedAt = 0;

  constructor(steady: () => number = monotonic.now, wall: () => number = Date.now) {
    this.#monotonic = steady;
    this.#offsetMs = wall() - steady();
  }

  /** The monotonic time, to be read just before a request and passed to `compare` after its answer. */
  mark(): number {
    return this.#monotonic();
  }

  /**
   * Compares the clocks by an answer that carries the server's time. The comparison with the smallest error is used
   * until drift makes a newer one better. `answeredAt` is given when another thread received the answer, which may be
   * long ago.
   */
  compare(serverTime: string, askedAt: number, answeredAt = this.#monotonic()): void {
    const serverMs = Date.parse(serverTime);
    if (Number.isNaN(serverMs)) return;
    const errorMs = (answeredAt - askedAt) / 2;
    if (errorMs > this.#errorMs + (answeredAt - this.#comparedAt) * DRIFT) return;
    this.#offsetMs = serverMs - (askedAt + answeredAt) / 2;
    this.#errorMs = errorMs;
    this.#comparedAt = answeredAt;
  }

  /** The server's time now, in milliseconds since 1970. */
  now(): number {
    return this.#offsetMs + this.#monotonic();
  }
}

import { performance } from 'node:perf_hooks';
import { TimerClock } from '../core/clock.js';

/** Each thread counts `performance.now()` from its own start; the time below it is the same for all of them. */
const START_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/**
 * Time that only moves forward, in milliseconds since some moment: for spans and deadlines inside a worker. All
 * threads of the process read the same time, so they can tell each other when something happened.
 */
export const monotonic = new TimerClock(() => START_MS + performance.now());

/** Two quartz clocks drift apart by less than this share of the time since they were compared. */
const DRIFT = 1e-4;

/**
 * The server's clock as seen from here: a comparison taken with each answer that carries the server's time,
 * carried forward by monotonic time, so that a wrong or jumping local clock does not matter.
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

  /** Monotonic time, to be taken just before a request and handed to `compare` after its answer. */
  mark(): number {
    return this.#monotonic();
  }

  /**
   * Takes in the server's time from an answer; the tightest comparison wins until it has aged. An answer that
   * another thread received says when that was: it may have waited here for a long time.
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

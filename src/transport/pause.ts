import { setTimeout as delay } from 'node:timers/promises';
import { MAX_TIMER_MS } from '../core/clock.js';
import type { PunctualError } from '../core/errors.js';
import { type Backoff, backoffMs } from '../core/retry.js';

/** What a node answers that cannot serve, and what a node that cannot be reached counts as. */
const UNAVAILABLE = 503;

/** Waits, and returns early without an error when the signal aborts. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(Math.min(ms, MAX_TIMER_MS), undefined, signal && { signal }).catch(() => undefined);
}

/** Pauses that grow while failures repeat, so that many workers do not storm a server that is coming back. */
export class GrowingPause {
  readonly #backoff: Backoff;
  readonly #triesAtOnce: number;
  #failures = 0;
  #unserved = 0;

  /** So many failures in a row that another node may not share are followed by no pause. */
  constructor(baseMs: number, maxMs: number, triesAtOnce = 0) {
    this.#triesAtOnce = triesAtOnce;
    this.#backoff = { baseMs, factor: 2, maxMs, jitter: 0.5 };
  }

  /** Notes a success: the next pause is the shortest again. */
  reset(): void {
    this.#failures = 0;
    this.#unserved = 0;
  }

  /** Notes a failure and gives the pause that should follow it. */
  nextMs(error?: PunctualError): number {
    if (error?.status === UNAVAILABLE && this.#unserved < this.#triesAtOnce) {
      this.#unserved += 1;
      return 0;
    }
    this.#failures += 1;
    return backoffMs(this.#backoff, this.#failures, Math.random());
  }
}

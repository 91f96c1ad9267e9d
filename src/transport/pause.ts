import { setTimeout as delay } from 'node:timers/promises';
import { MAX_TIMER_MS } from '../core/clock.js';
import type { PunctualError } from '../core/errors.js';
import { type Backoff, backoffMs } from '../core/retry.js';

/** The status of an answer from a node that cannot serve, and of the error for a node that cannot be reached. */
const UNAVAILABLE = 503;

/** Waits; resolves early when the signal aborts. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(Math.min(ms, MAX_TIMER_MS), undefined, signal && { signal }).catch(() => undefined);
}

/** Exponential backoff with jitter, so that many workers do not all ask a node at the moment it comes back. */
export class GrowingPause {
  readonly #backoff: Backoff;
  readonly #triesAtOnce: number;
  #failures = 0;
  #unserved = 0;

  /** The first `triesAtOnce` failures in a row of the kind that another node may not have are followed by no pause. */
  constructor(baseMs: number, maxMs: number, triesAtOnce = 0) {
    this.#triesAtOnce = triesAtOnce;
    this.#backoff = { baseMs, factor: 2, maxMs, jitter: 0.5 };
  }

  /** Records a success: the next pause is the shortest again. */
  reset(): void {
    this.#failures = 0;
    this.#unserved = 0;
  }

  /** Records a failure and returns the pause that should follow it. */
  nextMs(error?: PunctualError): number {
    if (error?.status === UNAVAILABLE && this.#unserved < this.#triesAtOnce) {
      this.#unserved += 1;
      return 0;
    }
    this.#failures += 1;
    return backoffMs(this.#backoff, this.#failures, Math.random());
  }
}

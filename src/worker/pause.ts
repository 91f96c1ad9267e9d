import { setTimeout as delay } from 'node:timers/promises';
import { MAX_TIMER_MS } from '../core/clock.js';
import { type Backoff, backoffMs } from '../core/retry.js';

/** Waits, and returns early without an error when the signal aborts. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(Math.min(ms, MAX_TIMER_MS), undefined, signal && { signal }).catch(() => undefined);
}

/** Pauses that grow while failures repeat, so that many workers do not storm a server that is coming back. */
export class GrowingPause {
  readonly #backoff: Backoff;
  #failures = 0;

  /** The first `atOnce` failures in a row are followed by no pause: there may be others to turn to. */
  constructor(
    baseMs: number,
    maxMs: number,
    readonly atOnce = 0,
  ) {
    this.#backoff = { baseMs, factor: 2, maxMs, jitter: 0.5 };
  }

  /** Notes a success: the next pause is the shortest again. */
  reset(): void {
    this.#failures = 0;
  }

  /** Notes a failure and gives the pause that should follow it. */
  nextMs(): number {
    this.#failures += 1;
    const repeated = this.#failures - this.atOnce;
    return repeated > 0 ? backoffMs(this.#backoff, repeated, Math.random()) : 0;
  }
}

/** Lets one waiter sleep until somebody rings; a ring with nobody waiting is kept. */
export class Bell {
  #rung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves at the next ring, at once if one was missed. */
  async rung(): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    this.#rung = false;
  }
}

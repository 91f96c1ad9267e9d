import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { bucketOf, emptyHistogram } from '../core/histogram.js';
import { Loop } from '../core/loop.js';

/** Short enough that a hold of 50 ms is measured as 30 ms at least. */
const BUSY_EVERY_MS = 20;
/** Waking an idle process every 20 ms would cost half a percent of a core, far more than the samples. */
const IDLE_EVERY_MS = 100;
/** From this utilization on an event loop counts as busy. */
const BUSY_SHARE = 0.05;

/** The source of the time and of the event loop's utilization; tests replace it. */
interface LoopWatch {
  now(): number;
  /** The utilization of the event loop since the last call, 0 … 1. */
  busyShare(): number;
}

/**
 * How long this process's event loop was blocked, as a histogram of how late a timer fired. A node whose timers fire
 * late renews its lease late, and all its clients wait. A hold may begin at any moment between two samples, so it is
 * measured up to one period too short.
 */
export class LoopDelay {
  /** Counts per bucket since the start. */
  readonly counts: readonly number[];
  readonly #counts = emptyHistogram();
  readonly #loop: Loop;
  #sumMs = 0;
  #expected: number | undefined;

  constructor(private readonly watch: LoopWatch = thisProcess()) {
    this.counts = this.#counts;
    this.#loop = new Loop({
      name: 'loop delay',
      everyMs: BUSY_EVERY_MS,
      pass: async () => this.runOnce(),
      onError: () => undefined,
    });
  }

  /** All delays together, in milliseconds. */
  get sumMs(): number {
    return this.#sumMs;
  }

  start(): this {
    this.#loop.start();
    return this;
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  /** Takes one sample and answers with the pause until the next; the first one only starts the measurement. */
  runOnce(): number {
    const now = this.watch.now();
    if (this.#expected !== undefined) {
      const delayMs = Math.max(0, now - this.#expected);
      this.#counts[bucketOf(delayMs)]! += 1;
      this.#sumMs += delayMs;
    }
    const pauseMs = this.watch.busyShare() < BUSY_SHARE ? IDLE_EVERY_MS : BUSY_EVERY_MS;
    this.#expected = now + pauseMs;
    return pauseMs;
  }
}

function thisProcess(): LoopWatch {
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  return {
    now: () => performance.now(),
    busyShare: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
  };
}

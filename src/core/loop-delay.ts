import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { bucketOf, emptyHistogram } from './histogram.js';
import { Loop } from './loop.js';

/** Often enough that a hold of 50 ms is seen for the most part. */
const BUSY_EVERY_MS = 20;
/** Waking an idle process costs more than the sample itself: at 20 ms half a percent of a core. */
const IDLE_EVERY_MS = 100;
/** The share of its time that a loop must be at work to count as busy. */
const BUSY_SHARE = 0.05;

/** Where time and the use of the event loop are read. */
export interface LoopWatch {
  now(): number;
  /** The share of the time since the last call that the loop was at work. */
  busyShare(): number;
}

/**
 * How long this process's event loop was held: by how much a timer came too late, as a histogram. A node that
 * cannot come to its timers cannot renew its lease either, and everybody who asks it waits. A hold is seen up to
 * one period shorter than it was, because it may begin at any moment between two samples.
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

  /** One sample, answered with the pause until the next; the first only sets the mark for the second. */
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

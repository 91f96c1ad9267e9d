import { MAX_TIMER_MS } from './clock.js';

/** One background pass, run again and again. All of the product's background work goes through this. */
export interface LoopOptions {
  readonly name: string;
  /** Pause between two passes unless the pass asks for another one. */
  readonly everyMs: number;
  /** One pass; an answer that is a number is the pause until the next one. */
  readonly pass: () => Promise<unknown>;
  readonly onError: (name: string, error: unknown) => void;
}

const MAX_BACKOFF_MS = 5_000;

/** Never overlaps itself, goes on after any error with a growing pause, can be woken, stops cleanly. */
export class Loop {
  private timer: NodeJS.Timeout | undefined;
  private immediate: NodeJS.Immediate | undefined;
  private running: Promise<void> = Promise.resolve();
  private busy = false;
  private wokenWhileRunning = false;
  private stopped = true;
  private failures = 0;

  constructor(private readonly options: LoopOptions) {}

  /** Starts with a pass at once. */
  start(): this {
    this.stopped = false;
    this.scheduleNow();
    return this;
  }

  /**
   * Has a pass run as soon as possible: now, or right after the one that runs. While passes fail it changes
   * nothing: the next one is near, and a flood of wake-ups must not become a flood of failures.
   */
  wake(): void {
    if (this.stopped) return;
    if (this.failures > 0 && !this.busy) return;
    if (this.busy) this.wokenWhileRunning = true;
    else this.scheduleNow();
  }

  /** Resolves when the last pass has ended; no further one starts. */
  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    clearImmediate(this.immediate);
    await this.running;
  }

  private schedule(ms: number): void {
    this.timer = setTimeout(() => this.begin(), Math.min(ms, MAX_TIMER_MS));
    this.timer.unref();
  }

  /** In this turn of the event loop; a timer of no time at all would take a millisecond. */
  private scheduleNow(): void {
    if (this.immediate) return;
    clearTimeout(this.timer);
    this.immediate = setImmediate(() => {
      this.immediate = undefined;
      this.begin();
    });
  }

  private begin(): void {
    this.running = this.runOnce();
  }

  private async runOnce(): Promise<void> {
    this.busy = true;
    let next = this.options.everyMs;
    try {
      const answer = await this.options.pass();
      if (typeof answer === 'number') next = answer;
      this.failures = 0;
    } catch (error) {
      this.failures += 1;
      next = Math.min(MAX_BACKOFF_MS, 50 * 2 ** Math.min(this.failures, 10));
      this.options.onError(this.options.name, error);
    }
    this.busy = false;
    if (this.stopped) return;
    if (this.wokenWhileRunning && this.failures === 0) this.scheduleNow();
    else this.schedule(next);
    this.wokenWhileRunning = false;
  }
}

import { MAX_TIMER_MS } from './clock.js';
import { messageOf } from './errors.js';
import type { Log } from './log.js';

/** A background pass that is repeated. All background work of the product is driven by a `Loop`. */
interface LoopOptions {
  readonly name: string;
  /** Pause between two passes, unless the pass answers with another one. */
  readonly everyMs: number;
  /** One pass; if it answers with a number, that is the pause until the next one in milliseconds. */
  readonly pass: () => Promise<unknown>;
  readonly onError: (name: string, error: unknown) => void;
}

/** The usual `onError`: a warning with the name of the loop and the error. */
export function logFailure(log: Log, message: string): LoopOptions['onError'] {
  return (loop, error) => log.warn({ loop, error: messageOf(error) }, message);
}

const MAX_BACKOFF_MS = 5_000;

/** Runs passes that never overlap; after an error it goes on with a growing pause. It can be woken and stopped. */
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
   * Starts a pass at once, or right after the one that runs. While passes fail it does nothing: the next one is near,
   * and many wake-ups must not become many failures.
   */
  wake(): void {
    if (this.stopped) return;
    if (this.failures > 0 && !this.busy) return;
    if (this.busy) this.wokenWhileRunning = true;
    else this.scheduleNow();
  }

  /** No further pass starts; resolves when the last one has ended. */
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

  /** An immediate, because even a timer of 0 ms takes a millisecond. */
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

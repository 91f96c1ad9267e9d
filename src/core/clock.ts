/**
 * Time as the product sees it: the database's, in milliseconds since 1970. Timers belong to the clock, so that
 * a test that moves the clock also fires the timers that became due.
 */
export interface Clock {
  now(): number;
  /** Time that never steps, in milliseconds since an arbitrary moment: to measure how long something has lasted. */
  steady(): number;
  /** Calls `run` once at the moment or shortly after, never before. It does not keep the process alive. */
  at(moment: number, run: () => void): Timer;
  /** The same after so many milliseconds of steady time, even if the database's clock steps meanwhile. */
  after(ms: number, run: () => void): Timer;
}

/** A timer that can be cancelled. */
export interface Timer {
  cancel(): void;
}

/** The earlier of two moments, either of which may be missing. */
export function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

/** The longest delay of one timer of Node. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * One timer for many moments: it fires at the earliest moment that it was armed for, and is armed anew by whoever still
 * waits for a later one.
 */
export class EarliestTimer {
  private timer: Timer | undefined;
  private moment = Number.POSITIVE_INFINITY;

  constructor(
    private readonly clock: Pick<Clock, 'at'>,
    private readonly run: () => void,
  ) {}

  /** Fires at the moment, unless it is armed for an earlier one; null does nothing. */
  arm(moment: number | null): void {
    if (moment === null || moment >= this.moment) return;
    this.timer?.cancel();
    this.moment = moment;
    this.timer = this.clock.at(moment, () => {
      this.moment = Number.POSITIVE_INFINITY;
      this.run();
    });
  }

  /** Fires no more, even if it is armed again: work that ends after its owner has stopped leaves no timer behind. */
  stop(): void {
    this.timer?.cancel();
    this.moment = Number.NEGATIVE_INFINITY;
  }
}

/** A clock over any source of the current time, with Node's timers. */
export class TimerClock implements Clock {
  constructor(readonly now: () => number) {}

  steady(): number {
    return performance.now();
  }

  at(moment: number, run: () => void): Timer {
    return waitUntil(moment, this.now, run);
  }

  after(ms: number, run: () => void): Timer {
    return waitUntil(this.steady() + ms, () => this.steady(), run);
  }
}

function waitUntil(moment: number, now: () => number, run: () => void): Timer {
  let handle: NodeJS.Timeout;
  const wait = () => {
    const left = Math.min(Math.max(0, Math.ceil(moment - now())), MAX_TIMER_MS);
    // Node may fire a timer a fraction early, and a long wait needs several timers: check again before running.
    handle = setTimeout(() => (now() >= moment ? run() : wait()), left);
    handle.unref();
  };
  wait();
  return { cancel: () => clearTimeout(handle) };
}

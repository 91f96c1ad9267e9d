/**
 * Time as the product sees it: the database's, in milliseconds since 1970. Timers belong to the clock, so that
 * a test that moves the clock also fires what became due.
 */
export interface Clock {
  now(): number;
  /** Time that never steps, in milliseconds from anywhere: for how long something has lasted. */
  steady(): number;
  /** Calls `run` once when the moment has come, never before; does not hold the process open. */
  at(moment: number, run: () => void): Timer;
  /** The same when so many milliseconds have passed, whatever the database's clock does meanwhile. */
  after(ms: number, run: () => void): Timer;
}

/** A timer that can be dropped. */
export interface Timer {
  cancel(): void;
}

/** Node cannot wait longer than this in one timer. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

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
    // Node may fire a timer a fraction early, and long waits come in pieces: look again before running.
    handle = setTimeout(() => (now() >= moment ? run() : wait()), left);
    handle.unref();
  };
  wait();
  return { cancel: () => clearTimeout(handle) };
}

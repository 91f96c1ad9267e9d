/** Time as the product sees it: the database's, in milliseconds since 1970, injectable so that tests move it. */
export interface Clock {
  now(): number;
}

/** A timer handle that can be dropped. */
export interface Timer {
  cancel(): void;
}

/** Node cannot wait longer than this in one timer. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls `run` once after `ms`; never holds the process open and never overflows Node's timer range. */
export function after(ms: number, run: () => void): Timer {
  const handle = setTimeout(run, Math.min(Math.max(0, ms), MAX_TIMER_MS));
  handle.unref();
  return { cancel: () => clearTimeout(handle) };
}

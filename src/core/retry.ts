/** Whether, and when, a failed or lost attempt is followed by another one. */

/** The pauses between attempts: exponential, with a maximum and jitter. */
export interface Backoff {
  readonly baseMs: number;
  readonly factor: number;
  readonly maxMs: number;
  /** The random deviation, as a share (0 … 1) of the pause. */
  readonly jitter: number;
}

/** How many attempts a job has. */
export interface RetryPolicy {
  /** Attempts that may fail, the first one included. */
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  /** Attempts that may be lost with their worker, the first one included. */
  readonly onWorkerLost: { readonly maxAttempts: number };
}

/** The backoff of a submission that names none. */
export const DEFAULT_BACKOFF: Backoff = { baseMs: 2_000, factor: 2, maxMs: 600_000, jitter: 0.1 };

/** The retry policy of a submission that names none. */
export const DEFAULT_RETRY: RetryPolicy = {
  maxAttempts: 4,
  backoff: DEFAULT_BACKOFF,
  onWorkerLost: { maxAttempts: 3 },
};

/**
 * The pause after the n-th failure (n from 1); `random` is in [0, 1). Jitter never takes it above the maximum that the
 * user allowed.
 */
export function backoffMs(backoff: Backoff, failures: number, random: number): number {
  // The power becomes infinite after many failures, and Infinity × 0 is NaN.
  const growth = Math.min(backoff.factor ** Math.max(0, failures - 1), Number.MAX_VALUE);
  const delay = Math.min(backoff.baseMs * growth, backoff.maxMs);
  const spread = delay * backoff.jitter * (2 * random - 1);
  return Math.round(Math.min(Math.max(0, delay + spread), backoff.maxMs));
}

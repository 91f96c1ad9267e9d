/** When a failed or lost attempt is followed by another one. */

export interface Backoff {
  readonly baseMs: number;
  readonly factor: number;
  readonly maxMs: number;
  /** Share of the delay, 0 … 1, that is spread at random around it. */
  readonly jitter: number;
}

export interface RetryPolicy {
  /** Attempts in all that may fail by themselves, the first one included. */
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  /** Attempts in all that may be lost with their worker. */
  readonly onWorkerLost: { readonly maxAttempts: number };
}

export const DEFAULT_BACKOFF: Backoff = { baseMs: 2_000, factor: 2, maxMs: 600_000, jitter: 0.1 };

export const DEFAULT_RETRY: RetryPolicy = {
  maxAttempts: 4,
  backoff: DEFAULT_BACKOFF,
  onWorkerLost: { maxAttempts: 3 },
};

/**
 * The pause after the n-th failure (n from 1). `random` is in [0, 1); the result stays within the maximum,
 * so that a jittered delay never exceeds what the user allowed.
 */
export function backoffMs(backoff: Backoff, failures: number, random: number): number {
  // The power overflows after many failures, and infinitely many times nothing is not a number.
  const growth = Math.min(backoff.factor ** Math.max(0, failures - 1), Number.MAX_VALUE);
  const delay = Math.min(backoff.baseMs * growth, backoff.maxMs);
  const spread = delay * backoff.jitter * (2 * random - 1);
  return Math.round(Math.min(Math.max(0, delay + spread), backoff.maxMs));
}

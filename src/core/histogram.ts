import { firstReached } from './binary-search.js';

/**
 * Milliseconds as counts per bucket: cheap to add up, small to keep, good enough for percentiles. Bucket i holds the
 * values in [BOUNDS[i - 1], BOUNDS[i]); the last bucket has no upper bound.
 */
export const BOUNDS = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 2_000, 5_000, 10_000, 30_000,
  60_000, 300_000, 3_600_000,
] as const;

/** The index of a value's bucket. */
export function bucketOf(value: number): number {
  return firstReached(0, BOUNDS.length, (i) => value < BOUNDS[i]!);
}

/** A histogram without values. */
export function emptyHistogram(): number[] {
  return new Array(BOUNDS.length + 1).fill(0);
}

/** The upper bound of the bucket that holds the percentile, given as a share of 0 … 1; null without values. */
export function percentile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let seen = 0;
  for (let i = 0; i < counts.length; i++) {
    seen += counts[i]!;
    if (seen >= share * total) return BOUNDS[Math.min(i, BOUNDS.length - 1)]!;
  }
  return BOUNDS[BOUNDS.length - 1]!;
}

/** Fewer and wider buckets, for histograms of which there are many. */
export const WIDE_BOUNDS = [5, 10, 50, 100, 500, 1_000, 5_000, 30_000, 60_000, 300_000, 3_600_000] as const;

/** Milliseconds in wide buckets, and their sum. */
export class WideHistogram {
  readonly counts: number[] = new Array(WIDE_BOUNDS.length + 1).fill(0);
  sumMs = 0;

  /** Counts a value. Called for every attempt, so it looks for the bucket from the front: most values are small. */
  add(value: number): void {
    let bucket = 0;
    while (bucket < WIDE_BOUNDS.length && value >= WIDE_BOUNDS[bucket]!) bucket += 1;
    this.counts[bucket]! += 1;
    this.sumMs += value;
  }
}

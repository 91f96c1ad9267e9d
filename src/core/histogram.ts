/**
 * Lateness as counts per bucket: cheap to add up, small to keep, good enough for percentiles. Bucket i holds
 * values below BOUNDS[i] and not below the bound before it; the last one is open.
 */
export const BOUNDS = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 2_000, 5_000, 10_000, 30_000,
  60_000, 300_000, 3_600_000,
] as const;

/** The bucket of a value. */
export function bucketOf(value: number): number {
  let low = 0;
  let high: number = BOUNDS.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value < BOUNDS[middle]!) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function emptyHistogram(): number[] {
  return new Array(BOUNDS.length + 1).fill(0);
}

/** The upper bound of the bucket in which the given share (0 … 1) of values is reached; null without values. */
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

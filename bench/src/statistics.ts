/** Arithmetic over what was measured. */

export interface Spread {
  readonly samples: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly worstMs: number;
}

/** The smallest value that at least this share of all values does not exceed. */
export function percentile(ascending: readonly number[], share: number): number {
  if (ascending.length === 0) return Number.NaN;
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)]!;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** How durations in milliseconds are spread. */
export function spread(durations: readonly number[]): Spread {
  const ascending = [...durations].sort((a, b) => a - b);
  return {
    samples: ascending.length,
    p50Ms: rounded(percentile(ascending, 0.5)),
    p99Ms: rounded(percentile(ascending, 0.99)),
    worstMs: rounded(percentile(ascending, 1)),
  };
}

/** Rounds to so many significant digits, for numbers that nobody reads to the last one. */
export function rounded(value: number, digits = 4): number {
  return Number.isFinite(value) ? Number(value.toPrecision(digits)) : value;
}

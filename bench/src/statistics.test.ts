import { describe, expect, it } from 'vitest';
import { percentile, rounded, spread } from './statistics.js';

describe('statistics', () => {
  it('takes the smallest value that the share does not exceed', () => {
    const values = Array.from({ length: 100 }, (_, i) => i + 1);
    expect([0.5, 0.99, 1].map((share) => percentile(values, share))).toEqual([50, 99, 100]);
    expect(percentile([7], 0.99)).toBe(7);
  });

  it('spreads durations in any order', () => {
    expect(spread([3, 1, 2])).toEqual({ samples: 3, p50Ms: 2, p99Ms: 3, worstMs: 3 });
  });

  it('rounds to significant digits and leaves the endless alone', () => {
    expect([rounded(1234.567), rounded(0.0123456), rounded(Number.POSITIVE_INFINITY)]).toEqual([
      1235,
      0.01235,
      Number.POSITIVE_INFINITY,
    ]);
  });
});

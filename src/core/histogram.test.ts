import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BOUNDS, bucketOf, emptyHistogram, percentile } from './histogram.js';

function histogramOf(values: readonly number[]): number[] {
  const counts = emptyHistogram();
  for (const value of values) counts[bucketOf(value)]! += 1;
  return counts;
}

const lateness = fc.oneof(fc.nat(100), fc.nat(10_000), fc.nat(100_000_000));

describe('a histogram', () => {
  it('has bounds that grow, and one bucket beyond the last', () => {
    expect([...BOUNDS]).toEqual([...new Set(BOUNDS)].sort((a, b) => a - b));
    expect(emptyHistogram()).toEqual(new Array(BOUNDS.length + 1).fill(0));
  });

  it('puts every value below its bound and not below the one before', () => {
    fc.assert(
      fc.property(lateness, (value) => {
        const bucket = bucketOf(value);
        expect(value).toBeLessThan(BOUNDS[bucket] ?? Number.POSITIVE_INFINITY);
        expect(value).toBeGreaterThanOrEqual(BOUNDS[bucket - 1] ?? 0);
      }),
    );
  });

  it('knows no percentile without values', () => {
    expect(percentile(emptyHistogram(), 0.5)).toBeNull();
    expect(percentile([], 0.5)).toBeNull();
  });

  it('answers with the upper bound of the bucket, and with the last bound for what is beyond', () => {
    expect(percentile(histogramOf([0, 0, 0, 40]), 0.5)).toBe(1);
    expect(percentile(histogramOf([0, 0, 0, 40]), 0.99)).toBe(50);
    expect(percentile(histogramOf([1e9]), 0.5)).toBe(3_600_000);
  });

  it('never says less than the true percentile, nor more than the next bound', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(3_599_999), { minLength: 1 }),
        fc.constantFrom(0.5, 0.9, 0.99, 1),
        (values, share) => {
          const exact = [...values].sort((a, b) => a - b)[Math.ceil(share * values.length) - 1]!;
          expect(percentile(histogramOf(values), share)).toBe(BOUNDS[bucketOf(exact)]);
        },
      ),
    );
  });

  it('adds up bucket by bucket', () => {
    fc.assert(
      fc.property(fc.array(lateness), fc.array(lateness), (a, b) => {
        const sum = histogramOf(a).map((count, i) => count + histogramOf(b)[i]!);
        expect(sum).toEqual(histogramOf([...a, ...b]));
      }),
    );
  });
});

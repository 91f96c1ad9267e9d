import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Backoff, backoffMs, DEFAULT_BACKOFF, DEFAULT_RETRY } from './retry.js';

const backoff: fc.Arbitrary<Backoff> = fc.record({
  baseMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 86_400_000 })),
  factor: fc.double({ min: 1, max: 100, noNaN: true }),
  maxMs: fc.integer({ min: 0, max: 3_162_240_000_000 }),
  jitter: fc.double({ min: 0, max: 1, noNaN: true }),
});
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const failures = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 1_000_000 }));

describe('the pause after a failure', () => {
  it('is 2, 4 and 8 seconds by default, for three retries', () => {
    const pauses = [1, 2, 3].map((n) => backoffMs(DEFAULT_BACKOFF, n, 0.5));
    expect(pauses).toEqual([2_000, 4_000, 8_000]);
    expect(DEFAULT_RETRY.maxAttempts).toBe(4);
  });

  it('is spread by the jitter around its middle', () => {
    expect(backoffMs(DEFAULT_BACKOFF, 1, 0)).toBe(1_800);
    expect(backoffMs(DEFAULT_BACKOFF, 1, 1 - Number.EPSILON)).toBe(2_200);
    expect(backoffMs({ ...DEFAULT_BACKOFF, jitter: 1 }, 1, 0)).toBe(0);
  });

  it('is a whole number of milliseconds from 0 to the maximum, after any number of failures', () => {
    fc.assert(
      fc.property(backoff, failures, random, (policy, n, chance) => {
        const pause = backoffMs(policy, n, chance);
        expect(Number.isSafeInteger(pause)).toBe(true);
        expect(pause).toBeGreaterThanOrEqual(0);
        expect(pause).toBeLessThanOrEqual(policy.maxMs);
      }),
    );
  });

  it('stays nothing when the base is nothing, however large the power grows', () => {
    expect(backoffMs({ baseMs: 0, factor: 100, maxMs: 1_000, jitter: 0 }, 999, 0.5)).toBe(0);
  });

  it('never shrinks from one failure to the next', () => {
    fc.assert(
      fc.property(backoff, failures, random, (policy, n, chance) => {
        expect(backoffMs(policy, n + 1, chance)).toBeGreaterThanOrEqual(backoffMs(policy, n, chance));
      }),
    );
  });

  it('keeps within the jitter of the exponential', () => {
    fc.assert(
      fc.property(backoff, fc.integer({ min: 1, max: 20 }), random, (policy, n, chance) => {
        const middle = Math.min(policy.baseMs * policy.factor ** (n - 1), policy.maxMs);
        const pause = backoffMs(policy, n, chance);
        expect(pause).toBeGreaterThanOrEqual(Math.floor(middle * (1 - policy.jitter)));
        expect(pause).toBeLessThanOrEqual(Math.ceil(middle * (1 + policy.jitter)));
      }),
    );
  });
});

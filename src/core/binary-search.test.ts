import fc from 'fast-check';
import { expect, it } from 'vitest';
import { firstReached } from './binary-search.js';

it('finds the first number from which on a condition holds, or the end', () => {
  fc.assert(
    fc.property(fc.nat(100), fc.nat(100), fc.integer({ min: -10, max: 210 }), (low, length, limit) => {
      const high = low + length;
      const expected = Math.min(Math.max(limit, low), high);
      expect(firstReached(low, high, (value) => value >= limit)).toBe(expected);
    }),
  );
});

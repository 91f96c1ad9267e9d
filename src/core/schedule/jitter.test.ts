import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jitterOf } from './jitter.js';

describe('jitter', () => {
  it('is a whole number of milliseconds from 0 to the most allowed, the same each time', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.maxSafeInteger(), fc.nat(86_400_000), (id, at, jitterMs) => {
        const jitter = jitterOf(id, at, jitterMs);
        expect(Number.isInteger(jitter)).toBe(true);
        expect(jitter).toBeGreaterThanOrEqual(0);
        expect(jitter).toBeLessThanOrEqual(jitterMs);
        expect(jitterOf(id, at, jitterMs)).toBe(jitter);
      }),
    );
  });

  it('never changes between versions', () => {
    expect(jitterOf('019a8b5c-0000-7000-8000-000000000001', 1_800_000_000_000, 10_000)).toBe(3_148);
  });

  it.each([
    ['schedules', (n: number) => jitterOf(`schedule-${n}`, 1_800_000_000_000, 9)],
    ['occurrences', (n: number) => jitterOf('schedule', 1_800_000_000_000 + n * 60_000, 9)],
  ])('is even over %s, both ends included', (_, jitter) => {
    const counts = new Array<number>(10).fill(0);
    for (let n = 0; n < 20_000; n++) counts[jitter(n)]!++;
    for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(250);
  });

  it('is nothing when none is allowed', () => {
    expect(jitterOf('schedule', 5, 0)).toBe(0);
  });
});

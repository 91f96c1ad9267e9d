import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admissionTime } from './admission-time.js';

const MINUTE = 60_000;

describe('the admission of a job', () => {
  it('is at once when it is due within the threshold', () => {
    expect(admissionTime(0, 5 * MINUTE, 15 * MINUTE)).toBeNull();
    expect(admissionTime(15 * MINUTE, 0, 15 * MINUTE)).toBeNull();
  });

  it('is well before it is due otherwise', () => {
    expect(admissionTime(60 * MINUTE, 0, 15 * MINUTE)).toBe(50 * MINUTE);
  });

  it('lies in the future, before the due time, and is final once it has come', () => {
    fc.assert(
      fc.property(
        fc.nat(1e12),
        fc.nat(1e12),
        fc.integer({ min: 1_000, max: 1e8 }),
        (runAt, now, threshold) => {
          const admitAt = admissionTime(runAt, now, threshold);
          if (admitAt === null) return;
          expect(admitAt).toBeGreaterThan(now);
          expect(admitAt).toBeLessThan(runAt);
          expect(admissionTime(runAt, admitAt, threshold)).toBeNull();
        },
      ),
    );
  });
});

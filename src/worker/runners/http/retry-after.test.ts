import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryAfterMs } from './retry-after.js';

const NOW = Date.UTC(2026, 0, 1);

describe('Retry-After', () => {
  it('is a number of seconds, at most an hour', () => {
    fc.assert(
      fc.property(fc.nat(), (seconds) => {
        expect(retryAfterMs(String(seconds), NOW)).toBe(Math.min(seconds * 1_000, 3_600_000));
      }),
    );
  });

  it('is a date, at most an hour ahead and never before now', () => {
    fc.assert(
      fc.property(fc.integer({ min: -10_000, max: 10_000 }), (seconds) => {
        const date = new Date(NOW + seconds * 1_000).toUTCString();
        expect(retryAfterMs(date, NOW)).toBe(Math.min(Math.max(seconds * 1_000, 0), 3_600_000));
      }),
    );
  });

  it('is nothing or a pause within bounds, whatever it says', () => {
    const odd = fc.oneof(
      fc.string(),
      fc.constantFrom('-1', '1.5', '1e3', '0x10', 'soon', '2026-01-01', ' 5 ', '9'.repeat(400), '5, 6', ''),
    );
    fc.assert(
      fc.property(odd, (text) => {
        const pause = retryAfterMs(text, NOW);
        if (pause !== undefined) expect(pause >= 0 && pause <= 3_600_000).toBe(true);
      }),
    );
    for (const text of ['-1', '1.5', '1e3', '0x10', 'soon', '2026-01-01', '5, 6', ''])
      expect(retryAfterMs(text, NOW)).toBeUndefined();
    expect(retryAfterMs(undefined, NOW)).toBeUndefined();
  });
});

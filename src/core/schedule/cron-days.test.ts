import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstDayOf, monthOf, weekdayOf } from './cron-days.js';

const DAY_MS = 86_400_000;

describe('the calendar', () => {
  it('agrees with Date for every day from the year 1 to 9999 and beyond', () => {
    fc.assert(
      fc.property(fc.integer({ min: -800_000, max: 3_000_000 }), (day) => {
        const date = new Date(day * DAY_MS);
        const month = date.getUTCFullYear() * 12 + date.getUTCMonth();
        expect(monthOf(day)).toBe(month);
        expect(firstDayOf(month)).toBe(day - date.getUTCDate() + 1);
        expect(weekdayOf(day)).toBe(date.getUTCDay());
      }),
    );
  });

  it('knows which centuries have a leap day', () => {
    const february = (year: number) => firstDayOf(year * 12 + 2) - firstDayOf(year * 12 + 1);
    expect([1900, 2000, 2024, 2026, 2100, 2400].map(february)).toEqual([28, 29, 29, 28, 28, 29]);
  });
});

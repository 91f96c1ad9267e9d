import { describe, expect, it } from 'vitest';
import { ScheduleError } from './schedule-error.js';
import { type Timetable, type Timing, timetable } from './timetable.js';

const OPEN = { startAt: null, endAt: null };
const DST = { gap: 'shift', overlap: 'first' } as const;
const HOUR = 3_600_000;
const NOON = Date.UTC(2026, 5, 1, 12);
const hourly: Timing = { kind: 'cron', expression: '0 * * * *', timezone: 'UTC', dst: DST };

function all(table: Timetable, after: number, until: number): number[] {
  const found: number[] = [];
  for (let at = table.next(after); at !== null && at <= until; at = table.next(at)) found.push(at);
  return found;
}

describe('a single moment', () => {
  const table = timetable({ kind: 'at', at: NOON }, OPEN);

  it('is due once', () => {
    expect([NOON - 1, NOON, NOON + 1].map((moment) => table.next(moment))).toEqual([NOON, null, null]);
    expect([NOON - 1, NOON, NOON + 1].map((moment) => table.previous(moment))).toEqual([null, NOON, NOON]);
    expect(table.count(NOON - 1, NOON)).toBe(1);
    expect(table.count(NOON, NOON + 1)).toBe(0);
    expect(table.note(NOON)).toBeUndefined();
  });

  it('is never due outside of its bounds', () => {
    const bounded = timetable({ kind: 'at', at: NOON }, { startAt: NOON + 1, endAt: null });
    expect(bounded.next(0)).toBeNull();
    expect(bounded.previous(NOON + HOUR)).toBeNull();
    expect(bounded.count(0, NOON + HOUR)).toBe(0);
  });
});

describe('an interval', () => {
  const table = timetable({ kind: 'every', everyMs: 90_000, from: NOON }, OPEN);

  it('is due when it begins and then in even steps', () => {
    expect(all(table, 0, NOON + 200_000)).toEqual([NOON, NOON + 90_000, NOON + 180_000]);
    expect(table.next(NOON)).toBe(NOON + 90_000);
    expect(table.next(NOON + 89_999)).toBe(NOON + 90_000);
  });

  it('is not due before it begins', () => {
    expect(table.previous(NOON - 1)).toBeNull();
    expect(table.previous(NOON)).toBe(NOON);
    expect(table.previous(NOON + 90_000 - 1)).toBe(NOON);
    expect(table.count(0, NOON - 1)).toBe(0);
    expect(table.count(0, NOON + 90_000)).toBe(2);
  });
});

describe('bounds', () => {
  it('are both included', () => {
    const table = timetable(hourly, { startAt: NOON, endAt: NOON + 2 * HOUR });
    expect(all(table, 0, Number.MAX_SAFE_INTEGER)).toEqual([NOON, NOON + HOUR, NOON + 2 * HOUR]);
    expect(table.count(0, NOON + 9 * HOUR)).toBe(3);
    expect(table.next(NOON + 2 * HOUR)).toBeNull();
    expect(table.previous(NOON + 9 * HOUR)).toBe(NOON + 2 * HOUR);
    expect(table.previous(NOON - 1)).toBeNull();
  });

  it('need not lie on an occurrence', () => {
    const table = timetable(hourly, { startAt: NOON - 1, endAt: NOON + HOUR + 1 });
    expect(all(table, 0, Number.MAX_SAFE_INTEGER)).toEqual([NOON, NOON + HOUR]);
    expect(table.previous(NOON - 1)).toBeNull();
  });

  it('that leave nothing leave nothing', () => {
    const table = timetable(hourly, { startAt: NOON + 1, endAt: NOON + 2 });
    expect(table.next(0)).toBeNull();
    expect(table.previous(Number.MAX_SAFE_INTEGER)).toBeNull();
    expect(table.count(0, Number.MAX_SAFE_INTEGER)).toBe(0);
  });

  it('hide the notes of what lies outside', () => {
    const at = Date.UTC(2026, 9, 25, 0, 30);
    const timing: Timing = { kind: 'cron', expression: '30 2 * * *', timezone: 'Europe/Berlin', dst: DST };
    expect(timetable(timing, OPEN).note(at)).toBe('first of two 02:30');
    expect(timetable(timing, { startAt: at + 1, endAt: null }).note(at)).toBeUndefined();
  });
});

describe('a note', () => {
  const at = Date.UTC(2026, 9, 25, 0, 30);
  const table = timetable(
    { kind: 'cron', expression: '30 2 * * *', timezone: 'Europe/Berlin', dst: DST },
    OPEN,
  );

  it('is only about occurrences', () => {
    expect(table.note(at)).toBe('first of two 02:30');
    expect(table.note(at + 1)).toBeUndefined();
    expect(table.note(at + 60_000)).toBeUndefined();
    expect(table.note(at + HOUR)).toBeUndefined();
  });
});

describe('a cron expression', () => {
  it('is counted at once over a year of seconds', () => {
    const timing: Timing = { kind: 'cron', expression: '* * * * * *', timezone: 'Europe/Berlin', dst: DST };
    const table = timetable(timing, OPEN);
    for (let year = 2021; year < 2041; year++) {
      const seconds = (Date.UTC(year, 0) - Date.UTC(year - 1, 0)) / 1_000;
      expect(table.count(Date.UTC(year - 1, 0), Date.UTC(year, 0))).toBe(seconds);
    }
  });

  it('ends with the last year of four digits and begins with the first', () => {
    const table = timetable({ ...hourly, expression: '0 0 1 1 *' }, OPEN);
    const last = table.previous(Number.MAX_SAFE_INTEGER)!;
    expect(new Date(last).toISOString()).toBe('9999-01-01T00:00:00.000Z');
    expect(table.next(last)).toBeNull();
    const first = table.next(Number.MIN_SAFE_INTEGER)!;
    expect(new Date(first).toISOString()).toBe('0001-01-01T00:00:00.000Z');
    expect(table.previous(first - 1)).toBeNull();
  });

  it('takes moments between two seconds', () => {
    const table = timetable({ ...hourly, expression: '* * * * * *' }, OPEN);
    expect(table.next(NOON - 1)).toBe(NOON);
    expect(table.next(NOON + 1)).toBe(NOON + 1_000);
    expect(table.previous(NOON + 999)).toBe(NOON);
    expect(table.previous(NOON - 1)).toBe(NOON - 1_000);
    expect(table.count(NOON - 1, NOON + 999)).toBe(1);
    expect(table.next(-1)).toBe(0);
    expect(table.next(-1_001)).toBe(-1_000);
  });

  it('that is wrong, or a wrong zone, is refused with a pointer to it', () => {
    const pointers = [{ expression: 'x' }, { timezone: 'Moon/Tranquility' }].map((change) => {
      try {
        timetable({ ...hourly, ...change }, OPEN);
      } catch (error) {
        return error instanceof ScheduleError && error.errors[0]!.pointer;
      }
      return undefined;
    });
    expect(pointers).toEqual(['/cron', '/timezone']);
  });
});

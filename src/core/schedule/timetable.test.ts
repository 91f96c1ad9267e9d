import { describe, expect, it } from 'vitest';
import { type Dst, type Timetable, timetable } from './timetable.js';

const OPEN = { startAt: null, endAt: null };

function cron(expression: string, timezone = 'UTC', dst: Partial<Dst> = {}): Timetable {
  return timetable(
    { kind: 'cron', expression, timezone, dst: { gap: 'shift', overlap: 'first', ...dst } },
    OPEN,
  );
}

function nextOnes(table: Timetable, after: string, count: number): string[] {
  const found: string[] = [];
  let at = Date.parse(after);
  while (found.length < count) {
    at = table.next(at)!;
    const note = table.note(at);
    found.push(new Date(at).toISOString().replace('.000Z', 'Z') + (note ? ` ${note}` : ''));
  }
  return found;
}

describe('a timetable', () => {
  it('shifts what a gap leaves out, and names it', () => {
    expect(nextOnes(cron('30 2 * * *', 'Europe/Berlin'), '2026-03-28T00:00:00Z', 3)).toEqual([
      '2026-03-28T01:30:00Z',
      '2026-03-29T01:30:00Z shifted from 02:30, which does not exist',
      '2026-03-30T00:30:00Z',
    ]);
  });

  it('runs the first of two', () => {
    expect(nextOnes(cron('30 2 * * *', 'Europe/Berlin'), '2026-10-24T12:00:00Z', 2)).toEqual([
      '2026-10-25T00:30:00Z first of two 02:30',
      '2026-10-26T01:30:00Z',
    ]);
  });

  it('counts a year of seconds at once', () => {
    const table = cron('* * * * * *');
    expect(table.count(Date.UTC(2026, 0), Date.UTC(2027, 0))).toBe(31_536_000);
  });
});

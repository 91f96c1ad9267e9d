import { describe, expect, it } from 'vitest';
import { changes } from './changes.js';
import { dueMoments, POLICIES, type Policy } from './due-moments.js';
import { readExpression } from './expression.js';
import { DAY, fieldsOf, HOUR, SECOND, walk } from './walk.js';
import { wallClock } from './wall-clock.js';

const utc = (text: string) => Date.parse(text);

function due(text: string, timezone: string, date: string, policy: Partial<Policy> = {}, stepMs?: number) {
  const from = utc(`${date}T00:00:00Z`);
  const walked = walk({
    timezone,
    from: from - 4 * HOUR,
    ...(stepMs === undefined ? { to: from + DAY } : { to: from + 4 * HOUR, stepMs, marginMs: 2 * HOUR }),
  });
  return dueMoments(readExpression(text), { gap: 'shift', overlap: 'first', ...policy }, walked).map(
    (moment) => new Date(moment).toISOString().replace('.000Z', 'Z'),
  );
}

function daysIn(month: string, dayOfMonth: string, dayOfWeek: string): number[] {
  const expression = readExpression(`0 0 ${dayOfMonth} * ${dayOfWeek}`);
  const from = utc(`${month}-01T00:00:00Z`);
  return Array.from({ length: 31 }, (_, day) => fieldsOf(from + day * DAY))
    .filter((fields) => fields.month === fieldsOf(from).month && expression.namesDate(fields))
    .map((fields) => fields.day);
}

describe('the wall clock of the oracle', () => {
  it.each([
    ['UTC', '2024-02-29T23:59:59Z', '2024-02-29T23:59:59Z'],
    ['Europe/Berlin', '2024-03-31T00:59:59Z', '2024-03-31T01:59:59Z'],
    ['Europe/Berlin', '2024-03-31T01:00:00Z', '2024-03-31T03:00:00Z'],
    ['Asia/Kathmandu', '2024-01-01T00:00:00Z', '2024-01-01T05:45:00Z'],
    ['America/New_York', '2024-01-01T00:00:00Z', '2023-12-31T19:00:00Z'],
    ['Africa/Monrovia', '1971-12-31T12:00:00Z', '1971-12-31T11:15:30Z'],
    ['UTC', '2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z'],
  ])('in %s at %s shows %s', (timezone, moment, wall) => {
    expect(wallClock(timezone)(utc(moment))).toBe(utc(wall));
  });

  it('is changed where the law says so', () => {
    expect(changes('Europe/Berlin', utc('2024-01-01T00:00:00Z'), utc('2025-01-01T00:00:00Z'))).toEqual([
      { at: utc('2024-03-31T01:00:00Z'), byMs: HOUR },
      { at: utc('2024-10-27T01:00:00Z'), byMs: -HOUR },
    ]);
    expect(changes('Pacific/Apia', utc('2011-12-01T00:00:00Z'), utc('2012-01-15T00:00:00Z'))).toEqual([
      { at: utc('2011-12-30T10:00:00Z'), byMs: DAY },
    ]);
    expect(changes('Africa/Monrovia', utc('1972-01-01T00:00:00Z'), utc('1972-02-01T00:00:00Z'))).toEqual([
      { at: utc('1972-01-07T00:44:30Z'), byMs: 2670 * SECOND },
    ]);
    expect(changes('Asia/Tokyo', utc('2020-01-01T00:00:00Z'), utc('2022-01-01T00:00:00Z'))).toEqual([]);
  });

  it('shows each time of an ordinary day once', () => {
    const from = utc('2024-06-01T00:00:00Z');
    const { times } = walk({ timezone: 'Europe/Berlin', from, to: from + DAY });
    expect(times.every((time) => time.moments.length === 1)).toBe(true);
  });
});

describe('the expressions of the oracle', () => {
  it.each<[month: string, dayOfMonth: string, dayOfWeek: string, days: number[]]>([
    ['2024-02', 'L', '*', [29]],
    ['2023-02', 'L', '?', [28]],
    ['2024-02', 'L-3', '*', [26]],
    ['2024-02', 'L-29', '*', []],
    ['2024-06', '15W', '*', [14]],
    ['2024-09', '15W', '*', [16]],
    ['2024-06', '1W', '*', [3]],
    ['2024-03', '31W', '*', [29]],
    ['2024-04', '31W', '*', []],
    ['2024-03', 'LW', '*', [29]],
    ['2024-03', '*', '5L', [29]],
    ['2024-03', '?', 'friL', [29]],
    ['2024-03', '*', 'FRI#2', [8]],
    ['2024-03', '*', '5#5', [29]],
    ['2024-02', '*', 'fri#5', []],
    ['2024-03', '*', '7', [3, 10, 17, 24, 31]],
    ['2024-03', '*', 'sat-7', [2, 3, 9, 10, 16, 17, 23, 24, 30, 31]],
    ['2024-03', '1', 'MON', [1, 4, 11, 18, 25]],
    ['2024-03', '*/10', 'MON', [11]],
    ['2024-03', '1-31', 'MON', Array.from({ length: 31 }, (_, index) => index + 1)],
    ['2024-03', '10/10', '*', [10, 20, 30]],
    ['2024-03', '5-11/3,L', '*', [5, 8, 11, 31]],
    ['2024-03', '*', '1/2', [1, 4, 6, 8, 11, 13, 15, 18, 20, 22, 25, 27, 29]],
    ['2024-03', '*', '5-7/2', [1, 3, 8, 10, 15, 17, 22, 24, 29, 31]],
  ])('in %s know the days of %s and %s', (month, dayOfMonth, dayOfWeek, days) => {
    expect(daysIn(month, dayOfMonth, dayOfWeek)).toEqual(days);
  });

  it.each([
    '0 0',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * * 13 *',
    '* * * * 8',
    '5-3 * * * *',
    '*/0 * * * *',
  ])('refuse %s', (text) => {
    expect(() => readExpression(text)).toThrow();
  });

  it('see when the hour lets everything through, however it is written', () => {
    const hours = ['*', '0-23', '*/1', '0/1', '0-11,12-23', '1-23', '*/2'];
    expect(hours.map((hour) => readExpression(`0 ${hour} * * *`).everyHour)).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  it('have short names', () => {
    expect(due('@daily', 'UTC', '2024-01-02')).toEqual(['2024-01-02T00:00:00Z']);
    expect(due('@Hourly', 'UTC', '2024-01-02')).toHaveLength(28);
    expect(due('@yearly', 'UTC', '2024-01-01')).toEqual(['2024-01-01T00:00:00Z']);
    expect(due('@weekly', 'UTC', '2024-01-07')).toEqual(['2024-01-07T00:00:00Z']);
  });
});

describe('the rule of the oracle', () => {
  it('moves a time in a gap on by the length of the gap, or leaves it out', () => {
    expect(due('30 2 * * *', 'Europe/Berlin', '2024-03-31')).toEqual(['2024-03-31T01:30:00Z']);
    expect(due('30 2 * * *', 'Europe/Berlin', '2024-03-31', { gap: 'skip' })).toEqual([]);
    expect(due('15 2 * * *', 'Australia/Lord_Howe', '2024-10-05')).toEqual(['2024-10-05T15:45:00Z']);
  });

  it('takes the first, the last or both passes of an overlap', () => {
    const first = '2024-10-27T00:30:00Z';
    const last = '2024-10-27T01:30:00Z';
    expect(due('30 2 * * *', 'Europe/Berlin', '2024-10-27')).toEqual([first]);
    expect(due('30 2 * * *', 'Europe/Berlin', '2024-10-27', { overlap: 'last' })).toEqual([last]);
    expect(due('30 2 * * *', 'Europe/Berlin', '2024-10-27', { overlap: 'both' })).toEqual([first, last]);
  });

  it('lets a moment that two wall-clock times lead to be one occurrence', () => {
    expect(due('30 2,3 * * *', 'Europe/Berlin', '2024-03-31')).toEqual(['2024-03-31T01:30:00Z']);
  });

  it('goes by real time when the hour lets everything through', () => {
    for (const policy of POLICIES) {
      for (const date of ['2024-03-31', '2024-10-27']) {
        expect(due('*/15 * * * *', 'Europe/Berlin', date, policy)).toHaveLength(4 * 28);
      }
    }
  });

  it('matches days by the date that the expression names, before any shift', () => {
    expect(due('30 23 30 12 *', 'Pacific/Apia', '2011-12-31')).toEqual(['2011-12-31T09:30:00Z']);
    expect(due('30 0 8 9 *', 'America/Santiago', '2024-09-08')).toEqual(['2024-09-08T04:30:00Z']);
  });

  it('goes by seconds where the expression or the zone does', () => {
    expect(due('10/25 59 1 31 * *', 'Europe/Berlin', '2024-03-31', {}, SECOND)).toEqual([
      '2024-03-31T00:59:10Z',
      '2024-03-31T00:59:35Z',
    ]);
    expect(due('40 30 2 * * *', 'Europe/Berlin', '2024-03-31', {}, SECOND)).toEqual(['2024-03-31T01:30:40Z']);
    expect(due('0 0 * * *', 'Africa/Monrovia', '1972-01-07', {}, SECOND)).toEqual(['1972-01-07T00:44:30Z']);
    expect(due('0 0 * * *', 'Africa/Monrovia', '1972-01-06', {}, SECOND)).toEqual(['1972-01-06T00:44:30Z']);
  });
});

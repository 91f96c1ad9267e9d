import { describe, expect, it } from 'vitest';
import { type Dst, timetable } from './timetable.js';

const SHIFT_FIRST: Dst = { gap: 'shift', overlap: 'first' };
const SKIP: Dst = { gap: 'skip', overlap: 'first' };
const LAST: Dst = { gap: 'shift', overlap: 'last' };
const BOTH: Dst = { gap: 'shift', overlap: 'both' };

/** The occurrences in (after, until], with what a preview says about them. */
function due(expression: string, timezone: string, dst: Dst, after: string, until: string): string[] {
  const table = timetable({ kind: 'cron', expression, timezone, dst }, { startAt: null, endAt: null });
  const found: string[] = [];
  let at = table.next(Date.parse(after));
  while (at !== null && at <= Date.parse(until)) {
    const note = table.note(at);
    found.push(new Date(at).toISOString().replace(/(:00)?\.000Z/, 'Z') + (note ? ` ${note}` : ''));
    at = table.next(at);
  }
  expect(table.count(Date.parse(after), Date.parse(until))).toBe(found.length);
  return found;
}

// Europe/Berlin: 02:00 becomes 03:00 on 2026-03-29 and 03:00 becomes 02:00 on 2026-10-25, both at 01:00 UTC.
describe('Europe/Berlin', () => {
  const spring = ['2026-03-28T12:00Z', '2026-03-29T20:00Z'] as const;
  const autumn = ['2026-10-24T12:00Z', '2026-10-25T20:00Z'] as const;
  const zone = 'Europe/Berlin';

  it('moves a time inside the gap by the length of the gap', () => {
    expect(due('30 2 * * *', zone, SHIFT_FIRST, ...spring)).toEqual([
      '2026-03-29T01:30Z shifted from 02:30, which does not exist',
    ]);
    expect(due('0 2 * * *', zone, SHIFT_FIRST, ...spring)).toEqual([
      '2026-03-29T01:00Z shifted from 02:00, which does not exist',
    ]);
    expect(due('59 59 2 * * *', zone, SHIFT_FIRST, ...spring)).toEqual([
      '2026-03-29T01:59:59Z shifted from 02:59:59, which does not exist',
    ]);
  });

  it('leaves out a time inside the gap when told so', () => {
    expect(due('30 2 * * *', zone, SKIP, ...spring)).toEqual([]);
    expect(due('0 2,3 * * *', zone, SKIP, ...spring)).toEqual(['2026-03-29T01:00Z']);
  });

  it('makes one occurrence of two times that come to the same moment', () => {
    expect(due('0,30 1-3 * * *', zone, SHIFT_FIRST, ...spring)).toEqual([
      '2026-03-29T00:00Z',
      '2026-03-29T00:30Z',
      '2026-03-29T01:00Z also stands for 02:00, which does not exist',
      '2026-03-29T01:30Z also stands for 02:30, which does not exist',
    ]);
    expect(due('15 2 * * *', zone, SHIFT_FIRST, ...spring)).toEqual([
      '2026-03-29T01:15Z shifted from 02:15, which does not exist',
    ]);
  });

  it('runs a repeated time once, first or last, or twice', () => {
    expect(due('30 2 * * *', zone, SHIFT_FIRST, ...autumn)).toEqual(['2026-10-25T00:30Z first of two 02:30']);
    expect(due('30 2 * * *', zone, LAST, ...autumn)).toEqual(['2026-10-25T01:30Z second of two 02:30']);
    expect(due('30 2 * * *', zone, BOTH, ...autumn)).toEqual([
      '2026-10-25T00:30Z first of two 02:30',
      '2026-10-25T01:30Z second of two 02:30',
    ]);
  });

  it('draws the edges of a gap and an overlap to the second', () => {
    expect(due('59 59 1 * * *', zone, SKIP, ...spring)).toEqual(['2026-03-29T00:59:59Z']);
    expect(due('0 0 3 * * *', zone, SKIP, ...spring)).toEqual(['2026-03-29T01:00Z']);
    expect(due('59 59 1 * * *', zone, BOTH, ...autumn)).toEqual(['2026-10-24T23:59:59Z']);
    expect(due('0 0 2 * * *', zone, BOTH, ...autumn)).toHaveLength(2);
    expect(due('59 59 2 * * *', zone, BOTH, ...autumn)).toHaveLength(2);
    expect(due('0 0 3 * * *', zone, BOTH, ...autumn)).toEqual(['2026-10-25T02:00Z']);
  });

  it.each([SHIFT_FIRST, SKIP, LAST, BOTH])(
    'lets every hour follow real time, whatever the policy: %j',
    (dst) => {
      for (const hours of ['*', '0-23', '*/1', '0/1', '0-11,12-23']) {
        expect(due(`0 ${hours} * * *`, zone, dst, '2026-03-29T00:00Z', '2026-03-29T03:00Z')).toEqual([
          '2026-03-29T01:00Z',
          '2026-03-29T02:00Z',
          '2026-03-29T03:00Z',
        ]);
        expect(due(`*/30 ${hours} * * *`, zone, dst, '2026-10-24T23:30Z', '2026-10-25T02:00Z')).toEqual([
          '2026-10-25T00:00Z first of two 02:00',
          '2026-10-25T00:30Z first of two 02:30',
          '2026-10-25T01:00Z second of two 02:00',
          '2026-10-25T01:30Z second of two 02:30',
          '2026-10-25T02:00Z',
        ]);
      }
    },
  );

  it('holds hours with a step to the wall clock', () => {
    expect(due('0 */2 * * *', zone, SHIFT_FIRST, '2026-03-28T22:00Z', '2026-03-29T04:00Z')).toEqual([
      '2026-03-28T23:00Z',
      '2026-03-29T01:00Z shifted from 02:00, which does not exist',
      '2026-03-29T02:00Z',
      '2026-03-29T04:00Z',
    ]);
    expect(due('0 */2 * * *', zone, SHIFT_FIRST, '2026-10-24T20:00Z', '2026-10-25T05:00Z')).toEqual([
      '2026-10-24T22:00Z',
      '2026-10-25T00:00Z first of two 02:00',
      '2026-10-25T03:00Z',
      '2026-10-25T05:00Z',
    ]);
  });

  it('finds nothing when every occurrence lies in a gap that is skipped', () => {
    const dst = SKIP;
    const timing = { kind: 'cron', expression: '30 2 ? 3 0L', timezone: zone, dst } as const;
    const table = timetable(timing, { startAt: Date.UTC(2020, 0), endAt: null });
    expect(table.next(Date.UTC(2026, 0))).toBeNull();
    expect(table.previous(Date.UTC(2026, 0))).toBeNull();
    expect(table.count(Date.UTC(2026, 0), Date.UTC(2036, 0))).toBe(0);
    const open = timetable(timing, { startAt: null, endAt: null });
    expect(open.previous(Date.UTC(2026, 0))).toBe(Date.UTC(1980, 2, 30, 1, 30));
  });
});

describe.each<[string, string, string, Dst, [string, string], string[]]>([
  // 02:00 becomes 03:00 on 2026-03-08 at 07:00 UTC; 02:00 becomes 01:00 on 2026-11-01 at 06:00 UTC.
  [
    'America/New_York',
    'spring',
    '30 2 * * *',
    SHIFT_FIRST,
    ['2026-03-08T00:00Z', '2026-03-09T00:00Z'],
    ['2026-03-08T07:30Z shifted from 02:30, which does not exist'],
  ],
  [
    'America/New_York',
    'autumn',
    '0 1 * * *',
    BOTH,
    ['2026-11-01T00:00Z', '2026-11-02T00:00Z'],
    ['2026-11-01T05:00Z first of two 01:00', '2026-11-01T06:00Z second of two 01:00'],
  ],
  // Half an hour: 02:00 becomes 02:30 on 2026-10-04 (15:30 UTC the day before), 02:00 becomes 01:30 on 2026-04-05.
  [
    'Australia/Lord_Howe',
    'spring',
    '0,15,30,45 2 * * *',
    SHIFT_FIRST,
    ['2026-10-03T00:00Z', '2026-10-04T00:00Z'],
    [
      '2026-10-03T15:30Z also stands for 02:00, which does not exist',
      '2026-10-03T15:45Z also stands for 02:15, which does not exist',
    ],
  ],
  [
    'Australia/Lord_Howe',
    'spring',
    '10 2 * * *',
    SHIFT_FIRST,
    ['2026-10-03T00:00Z', '2026-10-04T00:00Z'],
    ['2026-10-03T15:40Z shifted from 02:10, which does not exist'],
  ],
  [
    'Australia/Lord_Howe',
    'autumn',
    '0,45 1 * * *',
    BOTH,
    ['2026-04-04T00:00Z', '2026-04-05T00:00Z'],
    ['2026-04-04T14:00Z', '2026-04-04T14:45Z first of two 01:45', '2026-04-04T15:15Z second of two 01:45'],
  ],
  // The whole of 2011-12-30 does not exist; the 29th ends at 10:00 UTC.
  [
    'Pacific/Apia',
    'the missing day',
    '30 2 * * *',
    SHIFT_FIRST,
    ['2011-12-29T00:00Z', '2011-12-31T13:00Z'],
    [
      '2011-12-29T12:30Z',
      '2011-12-30T12:30Z also stands for 2011-12-30 02:30, which does not exist',
      '2011-12-31T12:30Z',
    ],
  ],
  [
    'Pacific/Apia',
    'the missing day',
    '30 2 30 12 *',
    SHIFT_FIRST,
    ['2011-01-01T00:00Z', '2012-12-31T00:00Z'],
    ['2011-12-30T12:30Z shifted from 2011-12-30 02:30, which does not exist', '2012-12-29T12:30Z'],
  ],
  [
    'Pacific/Apia',
    'the missing day',
    '30 2 30 12 *',
    SKIP,
    ['2011-01-01T00:00Z', '2012-12-31T00:00Z'],
    ['2012-12-29T12:30Z'],
  ],
  [
    'Pacific/Kwajalein',
    'the missing day',
    '0 9 21 8 *',
    SHIFT_FIRST,
    ['1993-01-01T00:00Z', '1994-01-01T00:00Z'],
    ['1993-08-21T21:00Z shifted from 1993-08-21 09:00, which does not exist'],
  ],
  // Midnight does not exist: 00:00 becomes 01:00 on 2026-04-24 (22:00 UTC the day before).
  [
    'Africa/Cairo',
    'spring',
    '@daily',
    SHIFT_FIRST,
    ['2026-04-22T22:00Z', '2026-04-24T21:00Z'],
    ['2026-04-23T22:00Z shifted from 00:00, which does not exist', '2026-04-24T21:00Z'],
  ],
  [
    'Africa/Cairo',
    'spring',
    '0 0 * * FRI',
    SKIP,
    ['2026-04-18T00:00Z', '2026-05-01T00:00Z'],
    ['2026-04-30T21:00Z'],
  ],
  // 24:00 of 2026-10-29 becomes 23:00 at 21:00 UTC.
  [
    'Africa/Cairo',
    'autumn',
    '30 23 * * *',
    LAST,
    ['2026-10-29T00:00Z', '2026-10-30T12:00Z'],
    ['2026-10-29T21:30Z second of two 23:30'],
  ],
  // Midnight did not exist on 2018-11-04; 24:00 of 2019-02-16 became 23:00. No changes since.
  [
    'America/Sao_Paulo',
    'spring',
    '0 0 * * *',
    SHIFT_FIRST,
    ['2018-11-03T04:00Z', '2018-11-05T02:00Z'],
    ['2018-11-04T03:00Z shifted from 00:00, which does not exist', '2018-11-05T02:00Z'],
  ],
  [
    'America/Sao_Paulo',
    'autumn',
    '30 23 * * *',
    SHIFT_FIRST,
    ['2019-02-16T12:00Z', '2019-02-18T12:00Z'],
    ['2019-02-17T01:30Z first of two 23:30', '2019-02-18T02:30Z'],
  ],
  [
    'America/Sao_Paulo',
    'no change any more',
    '0 0 * * *',
    SKIP,
    ['2026-11-01T00:00Z', '2026-11-02T12:00Z'],
    ['2026-11-01T03:00Z', '2026-11-02T03:00Z'],
  ],
  // Winter time is the exception there, by law; clocks do the same as in London.
  [
    'Europe/Dublin',
    'spring',
    '30 1 * * *',
    SHIFT_FIRST,
    ['2026-03-28T12:00Z', '2026-03-29T12:00Z'],
    ['2026-03-29T01:30Z shifted from 01:30, which does not exist'],
  ],
  [
    'Europe/Dublin',
    'autumn',
    '30 1 * * *',
    LAST,
    ['2026-10-24T12:00Z', '2026-10-25T12:00Z'],
    ['2026-10-25T01:30Z second of two 01:30'],
  ],
  // Offsets with half hours; 00:00 became 01:00 on 2022-03-22, 24:00 of 2022-09-21 became 23:00, the last time.
  [
    'Asia/Tehran',
    'spring',
    '15 0 * * *',
    SHIFT_FIRST,
    ['2022-03-21T00:00Z', '2022-03-22T12:00Z'],
    ['2022-03-21T20:45Z shifted from 00:15, which does not exist'],
  ],
  [
    'Asia/Tehran',
    'autumn',
    '15 23 * * *',
    BOTH,
    ['2022-09-21T00:00Z', '2022-09-22T12:00Z'],
    ['2022-09-21T18:45Z first of two 23:15', '2022-09-21T19:45Z second of two 23:15'],
  ],
  [
    'Asia/Tehran',
    'no change any more',
    '15 0 * * *',
    SKIP,
    ['2026-03-20T12:00Z', '2026-03-23T00:00Z'],
    ['2026-03-20T20:45Z', '2026-03-21T20:45Z', '2026-03-22T20:45Z'],
  ],
  // Clocks go back for Ramadan: 03:00 became 02:00 on 2026-02-15, and forward again on 2026-03-22.
  [
    'Africa/Casablanca',
    'before Ramadan',
    '30 2 * * *',
    BOTH,
    ['2026-02-14T12:00Z', '2026-02-16T12:00Z'],
    ['2026-02-15T01:30Z first of two 02:30', '2026-02-15T02:30Z second of two 02:30', '2026-02-16T02:30Z'],
  ],
  [
    'Africa/Casablanca',
    'after Ramadan',
    '30 2 * * *',
    SHIFT_FIRST,
    ['2026-03-21T12:00Z', '2026-03-23T12:00Z'],
    ['2026-03-22T02:30Z shifted from 02:30, which does not exist', '2026-03-23T01:30Z'],
  ],
  // A change of the standard time of the land, not of summer time: 2018-05-04 23:30 became the next midnight.
  [
    'Asia/Pyongyang',
    'a new standard time',
    '45 23 * * *',
    SHIFT_FIRST,
    ['2018-05-04T12:00Z', '2018-05-05T15:00Z'],
    ['2018-05-04T15:15Z shifted from 2018-05-04 23:45, which does not exist', '2018-05-05T14:45Z'],
  ],
  // The mean time of the place ended on 1893-04-01, by 6 minutes and 32 seconds.
  [
    'Europe/Berlin',
    'local mean time',
    '5 0 1 4 *',
    SHIFT_FIRST,
    ['1893-01-01T00:00Z', '1894-12-31T00:00Z'],
    ['1893-03-31T23:11:32Z shifted from 00:05, which does not exist', '1894-03-31T23:05Z'],
  ],
])('%s, %s', (zone, _, expression, dst, [after, until], wanted) => {
  it(`makes ${wanted.length} of ${expression} with ${dst.gap} and ${dst.overlap}`, () => {
    expect(due(expression, zone, dst, after, until)).toEqual(wanted);
  });
});

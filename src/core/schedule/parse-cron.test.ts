import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCron } from './parse-cron.js';
import { ScheduleError } from './schedule-error.js';

const START = Date.UTC(2026, 0, 1) / 1_000 - 1;

/** The wall-clock times after 2025-12-31 23:59:59, without what they all have in common. */
function named(expression: string, count: number): string[] {
  const cron = parseCron(expression);
  const found: string[] = [];
  for (let wall = START; found.length < count; ) {
    wall = cron.next(wall + 1);
    found.push(new Date(wall * 1_000).toISOString().slice(0, 19).replace('T', ' ').replace(/:00$/, ''));
  }
  return found;
}

function refusal(expression: string): ScheduleError {
  try {
    parseCron(expression);
  } catch (error) {
    if (error instanceof ScheduleError) return error;
    throw error;
  }
  throw new Error(`${expression} was taken`);
}

// The first day of 2026 is a Thursday.
describe('a cron expression', () => {
  it.each([
    ['* * * * *', ['2026-01-01 00:00', '2026-01-01 00:01', '2026-01-01 00:02']],
    ['* * * * * *', ['2026-01-01 00:00', '2026-01-01 00:00:01', '2026-01-01 00:00:02']],
    [
      '*/20 5 12 * * *',
      ['2026-01-01 12:05', '2026-01-01 12:05:20', '2026-01-01 12:05:40', '2026-01-02 12:05'],
    ],
    ['30 2 * * *', ['2026-01-01 02:30', '2026-01-02 02:30']],
    ['  30\t2  * * *  ', ['2026-01-01 02:30', '2026-01-02 02:30']],
    ['05 09 * * *', ['2026-01-01 09:05']],
    ['*/25 * * * *', ['2026-01-01 00:00', '2026-01-01 00:25', '2026-01-01 00:50', '2026-01-01 01:00']],
    ['*/60 */24 * * *', ['2026-01-01 00:00', '2026-01-02 00:00']],
    ['10-30/10 8 * * *', ['2026-01-01 08:10', '2026-01-01 08:20', '2026-01-01 08:30', '2026-01-02 08:10']],
    ['40/15 8 * * *', ['2026-01-01 08:40', '2026-01-01 08:55', '2026-01-02 08:40']],
    ['0 22-23,0-1 * * *', ['2026-01-01 00:00', '2026-01-01 01:00', '2026-01-01 22:00']],
    ['0 0 1 jan,JUL *', ['2026-01-01 00:00', '2026-07-01 00:00', '2027-01-01 00:00']],
    ['0 0 1 Feb-Apr *', ['2026-02-01 00:00', '2026-03-01 00:00', '2026-04-01 00:00', '2027-02-01 00:00']],
    ['0 0 31 * *', ['2026-01-31 00:00', '2026-03-31 00:00', '2026-05-31 00:00']],
    ['0 0 29 2 *', ['2028-02-29 00:00', '2032-02-29 00:00']],
    ['0 9 * * MON-FRI', ['2026-01-01 09:00', '2026-01-02 09:00', '2026-01-05 09:00']],
    ['0 9 * * 6,0', ['2026-01-03 09:00', '2026-01-04 09:00', '2026-01-10 09:00']],
    ['0 9 * * 7', ['2026-01-04 09:00', '2026-01-11 09:00']],
    ['0 9 * * 5-7', ['2026-01-02 09:00', '2026-01-03 09:00', '2026-01-04 09:00', '2026-01-09 09:00']],
    ['0 9 * * */2', ['2026-01-01 09:00', '2026-01-03 09:00', '2026-01-04 09:00', '2026-01-06 09:00']],
    ['0 9 * * MON/2', ['2026-01-02 09:00', '2026-01-05 09:00', '2026-01-07 09:00', '2026-01-09 09:00']],
  ])('with values, ranges, steps, lists and names: %s', (expression, wanted) => {
    expect(named(expression, wanted.length)).toEqual(wanted);
  });

  it.each([
    ['0 0 L * *', ['2026-01-31 00:00', '2026-02-28 00:00', '2026-03-31 00:00']],
    ['0 0 l-1 * *', ['2026-01-30 00:00', '2026-02-27 00:00']],
    ['0 0 L-30 * *', ['2026-01-01 00:00', '2026-03-01 00:00', '2026-05-01 00:00']],
    ['0 0 15,L * *', ['2026-01-15 00:00', '2026-01-31 00:00', '2026-02-15 00:00']],
    ['0 0 15W * *', ['2026-01-15 00:00', '2026-02-16 00:00', '2026-03-16 00:00']],
    ['0 0 1W 8 *', ['2026-08-03 00:00', '2027-08-02 00:00']],
    ['0 0 31W 1,5 *', ['2026-01-30 00:00', '2026-05-29 00:00']],
    ['0 0 31w 1-5 *', ['2026-01-30 00:00', '2026-03-31 00:00', '2026-05-29 00:00']],
    ['0 0 LW * *', ['2026-01-30 00:00', '2026-02-27 00:00', '2026-03-31 00:00']],
    ['0 0 * * 5L', ['2026-01-30 00:00', '2026-02-27 00:00']],
    ['0 0 * * sunl', ['2026-01-25 00:00', '2026-02-22 00:00']],
    ['0 0 * * FRI#2', ['2026-01-09 00:00', '2026-02-13 00:00']],
    ['0 0 * * 7#1,MON#1', ['2026-01-04 00:00', '2026-01-05 00:00', '2026-02-01 00:00', '2026-02-02 00:00']],
    ['0 0 * * 4#5', ['2026-01-29 00:00', '2026-04-30 00:00', '2026-07-30 00:00']],
  ])('with L, W and #: %s', (expression, wanted) => {
    expect(named(expression, wanted.length)).toEqual(wanted);
  });

  it.each([
    ['0 0 13 * FRI', 'both are restricted: either', ['2026-01-02', '2026-01-09', '2026-01-13', '2026-01-16']],
    ['0 0 13 * *', 'any weekday', ['2026-01-13', '2026-02-13']],
    ['0 0 13 * ?', 'any weekday', ['2026-01-13', '2026-02-13']],
    ['0 0 ? * FRI', 'any day of the month', ['2026-01-02', '2026-01-09']],
    ['0 0 ? * ?', 'any day', ['2026-01-01', '2026-01-02']],
    ['0 0 */2 * FRI', 'one begins with a star: both', ['2026-01-09', '2026-01-23', '2026-02-13']],
    ['0 0 13 * */5', 'one begins with a star: both', ['2026-02-13', '2026-03-13', '2026-09-13']],
    ['0 0 29 2 */7', 'both, and rarely so', ['2032-02-29', '2060-02-29', '2088-02-29', '2128-02-29']],
  ])('with days in both fields: %s (%s)', (expression, _, wanted) => {
    expect(named(expression, wanted.length)).toEqual(wanted.map((date) => `${date} 00:00`));
  });

  it.each([
    ['@yearly', '0 0 1 1 *'],
    ['@annually', '0 0 1 1 *'],
    ['@monthly', '0 0 1 * *'],
    ['@weekly', '0 0 * * 0'],
    ['@daily', '0 0 * * *'],
    ['@midnight', '0 0 * * *'],
    ['@hourly', '0 * * * *'],
    ['@Daily', '0 0 * * *'],
  ])('may be %s', (nickname, meaning) => {
    expect(named(nickname, 30)).toEqual(named(meaning, 30));
  });

  it.each([
    ['60 * * * *', 'minute', '"60" must be from 0 to 59'],
    ['-1 * * * *', 'minute', '"-1" is not understood'],
    ['1.5 * * * *', 'minute', '"1.5" is not understood'],
    ['005 * * * *', 'minute', '"005" must be from 0 to 59'],
    ['MON * * * *', 'minute', '"MON" must be from 0 to 59'],
    ['H * * * *', 'minute', '"H" must be from 0 to 59'],
    ['*/90 * * * *', 'minute', '"*/90" has a step of 90, which must be from 1 to 60'],
    ['*/0 * * * *', 'minute', '"*/0" has a step of 0, which must be from 1 to 60'],
    ['5/ * * * *', 'minute', '"5/" is not understood'],
    ['*/5/5 * * * *', 'minute', '"*/5/5" is not understood'],
    ['*-5 * * * *', 'minute', '"*-5" is not understood'],
    ['1,,2 * * * *', 'minute', '"1,,2" has an empty place in its list'],
    ['1, * * * *', 'minute', '"1," has an empty place in its list'],
    ['? * * * *', 'minute', '"?" is only for the day of month and the day of week, and stands alone'],
    ['L * * * *', 'minute', '"L" must be from 0 to 59'],
    ['60 * * * * *', 'second', '"60" must be from 0 to 59'],
    ['* 24 * * *', 'hour', '"24" must be from 0 to 23'],
    ['* 22-2 * * *', 'hour', '"22-2" runs backwards: write two ranges or a list'],
    ['* * 0 * *', 'day of month', '"0" must be from 1 to 31'],
    ['* * 32 * *', 'day of month', '"32" must be from 1 to 31'],
    ['* * 32W * *', 'day of month', '"32" must be from 1 to 31'],
    ['* * 1-5W * *', 'day of month', '"1-5W" is not understood'],
    ['* * W * *', 'day of month', '"W" must be from 1 to 31'],
    ['* * L-31 * *', 'day of month', '"L-31" must be at most 30 days before the last'],
    ['* * L-3W * *', 'day of month', '"L-3W" is not understood'],
    ['* * 5L * *', 'day of month', '"5L" is not understood'],
    ['* * ?,5 * *', 'day of month', '"?" is only for the day of month and the day of week, and stands alone'],
    ['* * ?/2 * *', 'day of month', '"?/2" is not understood'],
    ['* * * 13 *', 'month', '"13" must be from 1 to 12 or JAN to DEC'],
    ['* * * JANUARY *', 'month', '"JANUARY" must be from 1 to 12 or JAN to DEC'],
    ['* * * NOV-FEB *', 'month', '"NOV-FEB" runs backwards: write two ranges or a list'],
    ['* * * * 8', 'day of week', '"8" must be from 0 to 7 or SUN to SAT'],
    ['* * * * MO', 'day of week', '"MO" must be from 0 to 7 or SUN to SAT'],
    ['* * * * L', 'day of week', '"L" needs a day in front, such as 5L for the last Friday'],
    ['* * * * FRI#0', 'day of week', '"FRI#0" must name the first to the fifth of a month: #1 to #5'],
    ['* * * * FRI#6', 'day of week', '"FRI#6" must name the first to the fifth of a month: #1 to #5'],
    ['* * * * MON-FRI#2', 'day of week', '"MON-FRI#2" is not understood'],
    ['* * * * */8', 'day of week', '"*/8" has a step of 8, which must be from 1 to 7'],
    [
      '* * * * FRI-SUN',
      'day of week',
      '"FRI-SUN" runs backwards: write two ranges or a list (at the end of a range, Sunday is 7)',
    ],
  ] as const)('that says %s is refused for its %s', (expression, field, reason) => {
    const error = refusal(expression);
    expect(error.field).toBe(field);
    expect(error.code).toBe('INVALID_REQUEST');
    expect(error.errors).toEqual([{ pointer: '/cron', detail: `${field}: ${reason}` }]);
  });

  it.each([
    ['', 'is empty'],
    ['* * * *', 'has 4 fields'],
    [`${'1,'.repeat(600)}1 * * * *`, 'has 1209 characters: must have at most 1000'],
    ['*', 'has 1 field:'],
    ['0 0 1 1 * 2026 *', 'has 7 fields'],
    ['@reboot', '"@reboot" is none of @yearly'],
    ['@every 5m', '"@every 5m" is none of @yearly'],
    ['0 0 * * *\n0 1 * * *', 'has 9 fields'],
  ])('that says %j as a whole is refused', (expression, reason) => {
    const error = refusal(expression);
    expect(error.field).toBeUndefined();
    expect(error.message).toContain(reason);
  });

  it.each([
    '0 0 30 2 *',
    '0 0 31 4,6 *',
    '0 0 31 2,4,6,9,11 ?',
    '0 0 30,31 2 *',
    '0 0 31W 4 *',
    '0 0 30W 2 *',
    '0 0 L-30 4 *',
    '0 0 L-29 2 */2',
    '0 0 30 2 */2',
    '0 0 */31 * TUE#2',
    '0 0 */30 2 MON#2',
    '0 0 LW * */6',
  ])('that names a date that never comes is refused: %s', (expression) => {
    const error = refusal(expression);
    expect(error.field).toBe('day of month');
    expect(error.message).toContain('is a date that never comes');
  });

  it.each(['0 0 30 2 MON', '0 0 29 2 ?', '0 0 */28 2 */2', '0 0 ? 2 MON#5', '0 0 29W 2 *', '0 0 L-28 2 *'])(
    'that names a date that comes, if rarely, is taken: %s',
    (expression) => {
      expect(named(expression, 1)).toHaveLength(1);
    },
  );

  it('is refused exactly when its date does not come in 400 years, after which the calendar repeats', () => {
    const dates = new Set<string>();
    for (let at = Date.UTC(2000, 0); at < Date.UTC(2400, 0); at += 86_400_000) {
      const date = new Date(at);
      dates.add(`${date.getUTCDate()} ${date.getUTCMonth() + 1} ${date.getUTCDay()}`);
    }
    const comes = (day: number, month: number, step: number) =>
      [0, 1, 2, 3, 4, 5, 6].some(
        (weekday) => weekday % step === 0 && dates.has(`${day} ${month} ${weekday}`),
      );
    for (let day = 1; day <= 31; day++) {
      for (let month = 1; month <= 12; month++) {
        for (let step = 1; step <= 7; step++) {
          const expression = `0 0 ${day} ${month} */${step}`;
          if (comes(day, month, step)) expect(named(expression, 1)).toHaveLength(1);
          else expect(refusal(expression).message).toContain('never comes');
        }
      }
    }
  });

  it('that is any text is taken or refused with a reason, and nothing else happens', () => {
    const part = fc.constantFrom(
      '*',
      '?',
      '/',
      '-',
      ',',
      '#',
      'L',
      'W',
      '0',
      '5',
      '31',
      '7',
      'FRI',
      'x',
      ' ',
      '@',
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(part, { maxLength: 24 }).map((parts) => parts.join('')),
      fc
        .array(
          fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
          {
            minLength: 5,
            maxLength: 6,
          },
        )
        .map((fields) => fields.join(' ')),
    );
    fc.assert(
      fc.property(text, (expression) => {
        try {
          expect(Number.isFinite(parseCron(expression).next(START))).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(ScheduleError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

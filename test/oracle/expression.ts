/**
 * A small interpreter of the cron dialect. It answers one question, whether an expression names a wall-clock time,
 * by trying every value and every day of the month.
 */

import type { WallFields } from './walk.js';

export interface Expression {
  readonly text: string;
  /** True if the hour field lets all 24 hours through: then the policies about changes of the clocks do not apply. */
  readonly everyHour: boolean;
  readonly hasSeconds: boolean;
  /** Whether the expression names this time of day. */
  namesTime(time: TimeOfDay): boolean;
  /** Whether the expression names this date. */
  namesDate(date: CalendarDate): boolean;
}

export type TimeOfDay = Pick<WallFields, 'hour' | 'minute' | 'second'>;
export type CalendarDate = Pick<WallFields, 'year' | 'month' | 'day'>;

type Values = ReadonlySet<number>;
type DateRule = (date: CalendarDate) => boolean;

const MACROS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const MONTHS = ['', 'JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

/** Reads an expression; throws when it is none of the dialect. */
export function readExpression(text: string): Expression {
  const fields = (MACROS[text.trim().toLowerCase()] ?? text).trim().split(/\s+/);
  const hasSeconds = fields.length === 6;
  if (fields.length === 5) fields.unshift('0');
  if (fields.length !== 6) throw new Error(`${text} has ${fields.length} fields`);
  const [second, minute, hour, day, month, weekday] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const seconds = values(second, 0, 59);
  const minutes = values(minute, 0, 59);
  const hours = values(hour, 0, 23);
  const months = values(month, 1, 12, MONTHS);
  const days = dateRule(day, weekday);
  return {
    text,
    hasSeconds,
    everyHour: hours.size === 24,
    namesTime: (time) => seconds.has(time.second) && minutes.has(time.minute) && hours.has(time.hour),
    namesDate: (date) => months.has(date.month) && days(date),
  };
}

/** The two fields about days: either may match when both are restricted, else both must. */
function dateRule(day: string, weekday: string): DateRule {
  const ofMonth = anyOf(day, (item) => dayOfMonth(item));
  const ofWeek = anyOf(weekday, (item) => dayOfWeek(item));
  const either = isRestricted(day) && isRestricted(weekday);
  return (date) => (either ? ofMonth(date) || ofWeek(date) : ofMonth(date) && ofWeek(date));
}

function isRestricted(field: string): boolean {
  return !field.startsWith('*') && field !== '?';
}

function anyOf(field: string, rule: (item: string) => DateRule): DateRule {
  if (field === '?') return () => true;
  const rules = field.split(',').map(rule);
  return (date) => rules.some((matches) => matches(date));
}

function dayOfMonth(item: string): DateRule {
  const upper = item.toUpperCase();
  if (upper === 'L') return (date) => date.day === lastDay(date);
  if (upper === 'LW') return (date) => date.day === Math.max(...workdays(date));
  const beforeLast = /^L-(\d+)$/.exec(upper);
  if (beforeLast !== null) {
    const days = number(beforeLast[1]!, 0, 30);
    return (date) => date.day === lastDay(date) - days;
  }
  const nearest = /^(\d+)W$/.exec(upper);
  if (nearest !== null) {
    const wanted = number(nearest[1]!, 1, 31);
    return (date) => wanted <= lastDay(date) && date.day === nearestWorkday(date, wanted);
  }
  const days = values(item, 1, 31);
  return (date) => days.has(date.day);
}

function dayOfWeek(item: string): DateRule {
  const upper = item.toUpperCase();
  const last = /^(\w+)L$/.exec(upper);
  if (last !== null) {
    const wanted = number(last[1]!, 0, 7, WEEKDAYS) % 7;
    return (date) => weekdayOf(date) === wanted && date.day + 7 > lastDay(date);
  }
  const kth = /^(\w+)#(\d)$/.exec(upper);
  if (kth !== null) {
    const wanted = number(kth[1]!, 0, 7, WEEKDAYS) % 7;
    const count = number(kth[2]!, 1, 5);
    return (date) => weekdayOf(date) === wanted && Math.ceil(date.day / 7) === count;
  }
  const days = new Set([...values(item, 0, 7, WEEKDAYS, 6)].map((value) => value % 7));
  return (date) => days.has(weekdayOf(date));
}

/**
 * The values of a list of numbers, ranges and steps. A step without an end goes on to `end`, which is the greatest
 * value but for weekdays: there 7 is another name for 0, and the week ends with Saturday.
 */
function values(
  field: string,
  least: number,
  greatest: number,
  names: readonly string[] = [],
  end = greatest,
): Values {
  return new Set(
    field.split(',').flatMap((item) => {
      const parts = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(item);
      if (parts === null || (parts[1] === '*' && parts[2] !== undefined)) {
        throw new Error(`${item} is not an item of a field`);
      }
      const step = parts[3] === undefined ? undefined : number(parts[3], 1, Number.MAX_SAFE_INTEGER);
      const from = parts[1] === '*' ? least : number(parts[1]!, least, greatest, names);
      let to = from;
      if (parts[2] !== undefined) to = number(parts[2], least, greatest, names);
      else if (parts[1] === '*' || step !== undefined) to = Math.max(from, end);
      if (from > to) throw new Error(`${item} runs backwards`);
      const found: number[] = [];
      for (let value = from; value <= to; value += step ?? 1) found.push(value);
      return found;
    }),
  );
}

function number(text: string, least: number, greatest: number, names: readonly string[] = []): number {
  const named = text === '' ? -1 : names.indexOf(text.toUpperCase());
  const value = named >= 0 ? named : /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= greatest) return value;
  throw new Error(`${text} is not between ${least} and ${greatest}`);
}

function weekdayOf({ year, month, day }: CalendarDate): number {
  return new Date(Date.UTC(year, month - 1, day)).getUTCDay();
}

function lastDay({ year, month }: CalendarDate): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate();
}

const workdaysOfMonths = new Map<number, readonly number[]>();

/** The days from Monday to Friday of the month of a date. */
function workdays({ year, month }: CalendarDate): readonly number[] {
  const key = year * 12 + month;
  const known = workdaysOfMonths.get(key);
  if (known !== undefined) return known;
  const days: number[] = [];
  for (let day = 1; day <= lastDay({ year, month, day }); day += 1) {
    const weekday = weekdayOf({ year, month, day });
    if (weekday >= 1 && weekday <= 5) days.push(day);
  }
  workdaysOfMonths.set(key, days);
  return days;
}

function nearestWorkday(date: CalendarDate, wanted: number): number {
  const distance = (day: number) => Math.abs(day - wanted);
  return workdays(date).reduce((best, day) => (distance(day) < distance(best) ? day : best));
}

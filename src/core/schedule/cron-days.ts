import type { ValueSet } from './cron-field.js';

/**
 * The days that a cron expression names.
 *
 * The Gregorian calendar is arithmetic on whole numbers: a day is its distance from 1970-01-01, a month is twelve times
 * its year plus 0 (January) to 11. Inside the calculation years begin in March, so that the leap day is the last one.
 */

/** The day-of-month field; days count from 1. */
export interface MonthDays {
  readonly days: readonly number[];
  /** Distances from the last day of the month: `L` is 0, `L-3` is 3. */
  readonly beforeLast: readonly number[];
  /** `15W`: the weekday nearest to the day, in the same month. */
  readonly nearestWeekday: readonly number[];
  /** `LW`: the last weekday of the month. */
  readonly lastWeekday: boolean;
}

/** The day-of-week field; 0 is Sunday. */
export interface WeekDays {
  readonly weekdays: readonly number[];
  /** `5L`: the last such day of the month. */
  readonly last: readonly number[];
  /** `5#2`: the n-th such day of the month. */
  readonly nth: readonly { readonly weekday: number; readonly n: number }[];
}

/**
 * Every combination of leap year and weekday of January 1st recurs within 40 years (that long around a year such as
 * 2100, which is no leap year), and with it every combination of a month's length and first weekday.
 */
const MONTHS_UNTIL_ALL_WERE_SEEN = 41 * 12;

const UNKNOWN = -1;

/**
 * The days that an expression names. The days of a month depend only on its length and on its first weekday, so there
 * are at most 28 sets of days. A set is a number whose bit 0 is the first day of the month.
 */
export class CronDays {
  private readonly sets = new Int32Array(28).fill(UNKNOWN);

  constructor(
    private readonly months: ValueSet,
    private readonly monthDays: MonthDays,
    private readonly weekDays: WeekDays,
    /** Whether one matching field is enough, which it is when both are restricted; otherwise both must match. */
    private readonly either: boolean,
  ) {}

  /** Whether any day ever matches. Every length of a month occurs with every first weekday within 400 years. */
  everComes(): boolean {
    return this.months.values.some((month) =>
      LENGTHS[month - 1]!.some((length) => WEEKDAYS.some((weekday) => this.set(length, weekday) !== 0)),
    );
  }

  has(day: number): boolean {
    const month = monthOf(day);
    const first = firstDayOf(month);
    return ((this.setOf(month, first) >>> (day - first)) & 1) === 1;
  }

  /** The first matching day at or after a day. */
  next(day: number): number {
    let month = monthOf(day);
    let first = firstDayOf(month);
    let wanted = -1 << (day - first);
    for (let tried = 0; tried <= MONTHS_UNTIL_ALL_WERE_SEEN; tried++) {
      const found = this.setOf(month, first) & wanted;
      if (found !== 0) return first + 31 - Math.clz32(found & -found);
      month++;
      first = firstDayOf(month);
      wanted = -1;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The last matching day at or before a day. */
  previous(day: number): number {
    let month = monthOf(day);
    let first = firstDayOf(month);
    let wanted = (2 << (day - first)) - 1;
    for (let tried = 0; tried <= MONTHS_UNTIL_ALL_WERE_SEEN; tried++) {
      const found = this.setOf(month, first) & wanted;
      if (found !== 0) return first + 31 - Math.clz32(found);
      month--;
      first = firstDayOf(month);
      wanted = -1;
    }
    return Number.NEGATIVE_INFINITY;
  }

  /** How many matching days lie in [from, until). */
  count(from: number, until: number): number {
    let month = monthOf(from);
    let first = firstDayOf(month);
    let wanted = -1 << (from - first);
    let count = 0;
    while (first < until) {
      const behind = firstDayOf(month + 1);
      if (behind > until) wanted &= (1 << (until - first)) - 1;
      count += bitsIn(this.setOf(month, first) & wanted);
      month++;
      first = behind;
      wanted = -1;
    }
    return count;
  }

  private setOf(month: number, first: number): number {
    const ofYear = ((month % 12) + 12) % 12;
    if (!this.months.has(ofYear + 1)) return 0;
    return this.set(firstDayOf(month + 1) - first, weekdayOf(first));
  }

  private set(length: number, firstWeekday: number): number {
    const index = (length - 28) * 7 + firstWeekday;
    if (this.sets[index] === UNKNOWN) {
      const byMonth = monthDaySet(this.monthDays, length, firstWeekday);
      const byWeek = weekDaySet(this.weekDays, length, firstWeekday);
      this.sets[index] = this.either ? byMonth | byWeek : byMonth & byWeek;
    }
    return this.sets[index]!;
  }
}

const LENGTHS = [[31], [28, 29], [31], [30], [31], [30], [31], [31], [30], [31], [30], [31]];
const WEEKDAYS = [0, 1, 2, 3, 4, 5, 6];

function monthDaySet(wanted: MonthDays, length: number, firstWeekday: number): number {
  let set = 0;
  const add = (day: number) => {
    if (day >= 1 && day <= length) set |= 1 << (day - 1);
  };
  for (const day of wanted.days) add(day);
  for (const before of wanted.beforeLast) add(length - before);
  for (const day of wanted.nearestWeekday) {
    if (day <= length) add(nearestWeekday(day, length, firstWeekday));
  }
  if (wanted.lastWeekday) add(nearestWeekday(length, length, firstWeekday));
  return set;
}

function nearestWeekday(day: number, length: number, firstWeekday: number): number {
  const weekday = (firstWeekday + day - 1) % 7;
  if (weekday === 6) return day === 1 ? 3 : day - 1;
  if (weekday === 0) return day === length ? day - 2 : day + 1;
  return day;
}

function weekDaySet(wanted: WeekDays, length: number, firstWeekday: number): number {
  let set = 0;
  const firstOf = (weekday: number) => 1 + ((weekday - firstWeekday + 7) % 7);
  for (const weekday of wanted.weekdays) {
    for (let day = firstOf(weekday); day <= length; day += 7) set |= 1 << (day - 1);
  }
  for (const weekday of wanted.last) {
    const first = firstOf(weekday);
    set |= 1 << (first + 7 * Math.floor((length - first) / 7) - 1);
  }
  for (const { weekday, n } of wanted.nth) {
    const day = firstOf(weekday) + 7 * (n - 1);
    if (day <= length) set |= 1 << (day - 1);
  }
  return set;
}

function bitsIn(set: number): number {
  let bits = set - ((set >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

const DAYS_OF_CYCLE = 146_097;
const DAYS_FROM_MARCH_0_TO_1970 = 719_468;

/** The first day of a month. */
export function firstDayOf(month: number): number {
  const marchMonth = month - 2;
  const year = Math.floor(marchMonth / 12);
  const cycle = Math.floor(year / 400);
  const yearOfCycle = year - cycle * 400;
  const dayOfYear = Math.floor((153 * (marchMonth - year * 12) + 2) / 5);
  const dayOfCycle =
    yearOfCycle * 365 + Math.floor(yearOfCycle / 4) - Math.floor(yearOfCycle / 100) + dayOfYear;
  return cycle * DAYS_OF_CYCLE + dayOfCycle - DAYS_FROM_MARCH_0_TO_1970;
}

/** The month that a day belongs to. */
export function monthOf(day: number): number {
  const shifted = day + DAYS_FROM_MARCH_0_TO_1970;
  const cycle = Math.floor(shifted / DAYS_OF_CYCLE);
  const dayOfCycle = shifted - cycle * DAYS_OF_CYCLE;
  const yearOfCycle = Math.floor(
    (dayOfCycle -
      Math.floor(dayOfCycle / 1_460) +
      Math.floor(dayOfCycle / 36_524) -
      Math.floor(dayOfCycle / 146_096)) /
      365,
  );
  const dayOfYear =
    dayOfCycle - (365 * yearOfCycle + Math.floor(yearOfCycle / 4) - Math.floor(yearOfCycle / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  return (cycle * 400 + yearOfCycle) * 12 + marchMonth + 2;
}

/** The weekday of a day, 0 for Sunday to 6 for Saturday. */
export function weekdayOf(day: number): number {
  return (((day + 4) % 7) + 7) % 7;
}

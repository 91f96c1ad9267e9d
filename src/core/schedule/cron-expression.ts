import type { CronDays } from './cron-days.js';
import type { ValueSet } from './cron-field.js';

const DAY = 86_400;

/**
 * The wall-clock times that a cron expression names, without a zone. A wall-clock time is the number of seconds from
 * 1970-01-01 00:00:00 to it, counted as if it were UTC.
 */
export class CronExpression {
  constructor(
    private readonly days: CronDays,
    private readonly times: TimesOfDay,
    /** Whether every hour matches; such an expression follows real time through DST changes. */
    readonly everyHour: boolean,
  ) {}

  matches(wall: number): boolean {
    const day = Math.floor(wall / DAY);
    const time = wall - day * DAY;
    return this.times.countBefore(time + 1) > this.times.countBefore(time) && this.days.has(day);
  }

  /** The first matching wall-clock time at or after one. */
  next(wall: number): number {
    const day = Math.floor(wall / DAY);
    const index = this.times.countBefore(wall - day * DAY);
    const found = this.days.next(index < this.times.perDay ? day : day + 1);
    return found * DAY + this.times.timeAt(found === day ? index : 0);
  }

  /** The last matching wall-clock time at or before one. */
  previous(wall: number): number {
    const day = Math.floor(wall / DAY);
    const index = this.times.countBefore(wall - day * DAY + 1) - 1;
    const found = this.days.previous(index >= 0 ? day : day - 1);
    return found * DAY + this.times.timeAt(found === day ? index : this.times.perDay - 1);
  }

  /** How many wall-clock times match in [from, until). */
  count(from: number, until: number): number {
    return until <= from ? 0 : this.countSince(Math.floor(from / DAY), from, until);
  }

  private countSince(day: number, from: number, until: number): number {
    const lastDay = Math.floor(until / DAY);
    const whole = this.days.count(day, lastDay) * this.times.perDay;
    const before = this.days.has(day) ? this.times.countBefore(from - day * DAY) : 0;
    const behind = this.days.has(lastDay) ? this.times.countBefore(until - lastDay * DAY) : 0;
    return whole - before + behind;
  }
}

/**
 * The times of day that an expression names, as seconds after midnight. They are numbered from 0 in ascending order, so
 * that finding the next one and counting them is the same arithmetic.
 */
export class TimesOfDay {
  readonly perDay: number;
  private readonly perHour: number;

  constructor(
    private readonly hours: ValueSet,
    private readonly minutes: ValueSet,
    private readonly seconds: ValueSet,
  ) {
    this.perHour = minutes.size * seconds.size;
    this.perDay = hours.size * this.perHour;
  }

  /** How many matching times lie before a time of day (0 to 86,400). */
  countBefore(time: number): number {
    const hour = Math.floor(time / 3_600);
    if (hour >= 24) return this.perDay;
    const whole = this.hours.countBelow(hour) * this.perHour;
    if (!this.hours.has(hour)) return whole;
    const minute = Math.floor((time - hour * 3_600) / 60);
    const counted = whole + this.minutes.countBelow(minute) * this.seconds.size;
    return this.minutes.has(minute) ? counted + this.seconds.countBelow(time % 60) : counted;
  }

  /** The time with an index from 0 to perDay - 1. */
  timeAt(index: number): number {
    const hour = Math.floor(index / this.perHour);
    const inHour = index - hour * this.perHour;
    const minute = Math.floor(inHour / this.seconds.size);
    return (
      this.hours.values[hour]! * 3_600 +
      this.minutes.values[minute]! * 60 +
      this.seconds.values[inHour - minute * this.seconds.size]!
    );
  }
}

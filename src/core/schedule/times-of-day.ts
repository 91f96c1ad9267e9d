import type { ValueSet } from './value-set.js';

/**
 * The times of a day that an expression names, as seconds after midnight. They are numbered from 0 in their
 * order, which turns "the next one" and "how many" into the same small calculation.
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

  /** How many times of the day lie before this one (0 to 86,400). */
  countBefore(time: number): number {
    const hour = Math.floor(time / 3_600);
    if (hour >= 24) return this.perDay;
    const whole = this.hours.countBelow(hour) * this.perHour;
    if (!this.hours.has(hour)) return whole;
    const minute = Math.floor((time - hour * 3_600) / 60);
    const counted = whole + this.minutes.countBelow(minute) * this.seconds.size;
    return this.minutes.has(minute) ? counted + this.seconds.countBelow(time % 60) : counted;
  }

  /** The time with a number from 0 to perDay - 1. */
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

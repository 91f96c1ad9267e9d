/**
 * The Gregorian calendar as arithmetic on whole numbers: a day is its distance from 1970-01-01, a month is
 * twelve times its year plus 0 (January) to 11. Years run from March inside, so that the leap day is the last.
 */

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

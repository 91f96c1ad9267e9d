/** Expressions over many years, where walking through every minute would take too long: date by date instead. */

import type { Expected } from './comparison.js';
import { dueMoments, type Policy } from './due-moments.js';
import { readExpression } from './expression.js';
import { DAY, fieldsOf, HOUR, walk } from './walk.js';
import { FIRST_YEAR, LAST_YEAR } from './windows.js';

const FROM = Date.UTC(FIRST_YEAR, 0, 1);
const TO = Date.UTC(LAST_YEAR + 1, 0, 1);

/** The dates from the first year to the last that an expression names, as the moments they begin in UTC. */
export function namedDates(text: string): number[] {
  const expression = readExpression(text);
  const dates: number[] = [];
  for (let date = FROM - DAY; date <= TO; date += DAY) {
    if (expression.namesDate(fieldsOf(date))) dates.push(date);
  }
  return dates;
}

/** All moments of fields about days at noon in UTC, from the first year to the last. */
export function everyNoon(days: {
  dayOfMonth: string;
  month: string;
  dayOfWeek: string;
}): Expected & { text: string } {
  const text = `0 12 ${days.dayOfMonth} ${days.month} ${days.dayOfWeek}`;
  const moments = namedDates(text)
    .map((date) => date + 12 * HOUR)
    .filter((moment) => moment >= FROM && moment < TO);
  return { about: text, text, from: FROM, to: TO, moments };
}

/** All moments of an expression that names few dates, from the first year to the last, by a walk around each date. */
export function fewDates(text: string, timezone: string, policy: Policy): Expected {
  const expression = readExpression(text);
  const moments = new Set(
    namedDates(text).flatMap((date) =>
      dueMoments(expression, policy, walk({ timezone, from: date - DAY, to: date + 3 * DAY })),
    ),
  );
  return {
    about: `${text} in ${timezone}, ${policy.gap} and ${policy.overlap}`,
    from: FROM,
    to: TO,
    moments: [...moments].filter((moment) => moment >= FROM && moment < TO).sort((one, other) => one - other),
  };
}

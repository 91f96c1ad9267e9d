import { addAll } from '../long-lists.js';
import { CronDays, type MonthDays, type WeekDays } from './cron-days.js';
import { CronExpression, TimesOfDay } from './cron-expression.js';
import {
  type FieldRule,
  HOUR,
  itemsOf,
  MINUTE,
  MONTH,
  MONTH_DAY,
  oneValue,
  SECOND,
  ValueSet,
  valuesOf,
  WEEKDAY,
  wrong,
} from './cron-field.js';
import { ScheduleError } from './schedule-error.js';

const NICKNAMES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

/** A cache: many schedules share few expressions, and a parsed one takes some kilobytes. */
const parsed = new Map<string, CronExpression>();
const MOST_PARSED = 10_000;

/** Longer than an expression that lists every value of every field. */
const MOST_LETTERS = 1_000;

/**
 * Parses a cron expression: minute, hour, day of month, month, day of week, preceded by the second if there are six
 * fields (otherwise it is 0). The dialect ignores case and refuses everything that is not listed here:
 *
 * - a value, a range `a-b`, `*` for all, a list of these with commas; names JAN to DEC and SUN to SAT; weekdays
 *   are 0 to 7, where 0 and 7 are Sunday. A range that runs backwards is refused: `22-23,0-2`, not `22-2`.
 * - a step after a range, after `*`, or after a value; then it goes from the value to the end of the field (to Saturday
 *   in the day of week). A step is at most the number of the field's values.
 * - day of month: `L` the last day, `L-3` three days before it, `15W` the weekday (Monday to Friday) nearest to
 *   the 15th inside the month, `LW` the last weekday. A month without a 31st has no `31W`.
 * - day of week: `5L` or `FRIL` the last Friday of the month, `5#2` or `FRI#2` the second one.
 * - `?` alone is the same as `*` alone, in the day of month and the day of week.
 * - when both the day of month and the day of week are restricted (neither begins with `*` nor is `?`), a day
 *   matches if either does; otherwise both must match.
 * - `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly`.
 *
 * A date that never comes, such as February 30th, is refused too.
 */
export function parseCron(expression: string): CronExpression {
  const text = expression.trim();
  const known = parsed.get(text);
  if (known) return known;
  if (parsed.size >= MOST_PARSED) parsed.clear();
  const cron = parse(text);
  parsed.set(text, cron);
  return cron;
}

type Fields = [
  second: string,
  minute: string,
  hour: string,
  monthDay: string,
  month: string,
  weekday: string,
];

function parse(text: string): CronExpression {
  const [second, minute, hour, monthDay, month, weekday] = fieldsOf(text);
  const hours = setOf(hour, HOUR);
  const times = new TimesOfDay(hours, setOf(minute, MINUTE), setOf(second, SECOND));
  const either = isRestricted(monthDay) && isRestricted(weekday);
  const days = new CronDays(setOf(month, MONTH), monthDaysOf(monthDay), weekDaysOf(weekday), either);
  if (!days.everComes()) {
    throw new ScheduleError(
      '/cron',
      `"${monthDay} ${month} ${weekday}" is a date that never comes`,
      MONTH_DAY.field,
    );
  }
  return new CronExpression(days, times, hours.size === 24);
}

function fieldsOf(text: string): Fields {
  if (text.length > MOST_LETTERS) {
    throw new ScheduleError('/cron', `has ${text.length} characters: must have at most ${MOST_LETTERS}`);
  }
  if (text.startsWith('@')) {
    const meaning = NICKNAMES[text.toLowerCase()];
    if (meaning !== undefined) return ['0', ...meaning.split(' ')] as Fields;
    throw new ScheduleError('/cron', `"${text}" is none of ${Object.keys(NICKNAMES).join(', ')}`);
  }
  const fields = text.split(/[ \t]+/);
  if (fields.length === 6) return fields as Fields;
  if (fields.length === 5) return ['0', ...fields] as Fields;
  const found = text === '' ? 'is empty' : `has ${fields.length} field${fields.length === 1 ? '' : 's'}`;
  throw new ScheduleError(
    '/cron',
    `${found}: must have 5 (minute, hour, day of month, month, day of week) or 6 with the second first`,
  );
}

function isRestricted(text: string): boolean {
  return !text.startsWith('*') && text !== '?';
}

function setOf(text: string, rule: FieldRule): ValueSet {
  return new ValueSet(
    itemsOf(text, rule).flatMap((item) => valuesOf(item, rule)),
    rule.max,
  );
}

function monthDaysOf(text: string): MonthDays {
  const found = { days: [] as number[], beforeLast: [] as number[], nearestWeekday: [] as number[] };
  let lastWeekday = false;
  for (const item of text === '?' ? ['*'] : itemsOf(text, MONTH_DAY)) {
    const beforeLast = /^L(?:-(\d+))?$/i.exec(item);
    const nearest = /^(\d+)W$/i.exec(item);
    if (beforeLast) found.beforeLast.push(beforeLastOf(beforeLast[1], item));
    else if (nearest) found.nearestWeekday.push(oneValue(nearest[1]!, MONTH_DAY));
    else if (/^LW$/i.test(item)) lastWeekday = true;
    else addAll(found.days, valuesOf(item, MONTH_DAY));
  }
  return { ...found, lastWeekday };
}

function beforeLastOf(text: string | undefined, item: string): number {
  const days = text === undefined ? 0 : Number(text);
  if (days > 30) throw wrong(MONTH_DAY, item, 'must be at most 30 days before the last');
  return days;
}

function weekDaysOf(text: string): WeekDays {
  const found = {
    weekdays: [] as number[],
    last: [] as number[],
    nth: [] as { weekday: number; n: number }[],
  };
  for (const item of text === '?' ? ['*'] : itemsOf(text, WEEKDAY)) {
    const last = /^([a-z]{3}|\d+)L$/i.exec(item);
    const nth = /^([a-z]{3}|\d+)#(\d+)$/i.exec(item);
    if (last) found.last.push(oneValue(last[1]!, WEEKDAY) % 7);
    else if (nth) found.nth.push({ weekday: oneValue(nth[1]!, WEEKDAY) % 7, n: nthOf(nth[2]!, item) });
    else if (/^L$/i.test(item))
      throw wrong(WEEKDAY, item, 'needs a day in front, such as 5L for the last Friday');
    else
      addAll(
        found.weekdays,
        valuesOf(item, WEEKDAY).map((weekday) => weekday % 7),
      );
  }
  return found;
}

function nthOf(text: string, item: string): number {
  const n = Number(text);
  if (n < 1 || n > 5) throw wrong(WEEKDAY, item, 'must name the first to the fifth of a month: #1 to #5');
  return n;
}

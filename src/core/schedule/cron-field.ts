import { type CronField, ScheduleError } from './schedule-error.js';

/** The values that one field of an expression may have. */
export interface FieldRule {
  readonly field: CronField;
  readonly min: number;
  readonly max: number;
  /** The largest value that `*` and `a/n` produce: in the day of week it is 6, as 7 is another name for 0. */
  readonly last: number;
  /** Names in the order of the values, from `min` on. */
  readonly names: readonly string[];
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

/** The fields of an expression. */
export const SECOND: FieldRule = { field: 'second', min: 0, max: 59, last: 59, names: [] };
export const MINUTE: FieldRule = { field: 'minute', min: 0, max: 59, last: 59, names: [] };
export const HOUR: FieldRule = { field: 'hour', min: 0, max: 23, last: 23, names: [] };
export const MONTH_DAY: FieldRule = { field: 'day of month', min: 1, max: 31, last: 31, names: [] };
export const MONTH: FieldRule = { field: 'month', min: 1, max: 12, last: 12, names: MONTHS };
export const WEEKDAY: FieldRule = { field: 'day of week', min: 0, max: 7, last: 6, names: WEEKDAYS };

const ITEM = /^(?:(\*)|([a-z]+|\d+)(?:-([a-z]+|\d+))?)(?:\/(\d+))?$/i;

/** The comma-separated items of a field. */
export function itemsOf(text: string, rule: FieldRule): string[] {
  const items = text.split(',');
  if (items.includes('')) throw wrong(rule, text, 'has an empty place in its list');
  return items;
}

/** The values of one item: a value, a range or everything, each with or without a step. */
export function valuesOf(item: string, rule: FieldRule): number[] {
  const match = ITEM.exec(item);
  if (!match) throw notUnderstood(item, rule);
  const [, star, first, second, step] = match;
  const from = star === undefined ? oneValue(first!, rule) : rule.min;
  const until =
    second === undefined
      ? endOf(from, star !== undefined || step !== undefined, rule)
      : oneValue(second, rule);
  if (until < from) {
    throw wrong(rule, item, `runs backwards: write two ranges or a list${sundayHint(second!, rule)}`);
  }
  const every = step === undefined ? 1 : stepOf(step, item, rule);
  const values: number[] = [];
  for (let value = from; value <= until; value += every) values.push(value);
  return values;
}

function endOf(from: number, open: boolean, rule: FieldRule): number {
  return open ? Math.max(from, rule.last) : from;
}

/** One value of a field, as a number or a name. */
export function oneValue(text: string, rule: FieldRule): number {
  const named = rule.names.indexOf(text.toUpperCase());
  if (named >= 0) return rule.min + named;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= rule.min && value <= rule.max) return value;
  const names = rule.names.length > 0 ? ` or ${rule.names[0]} to ${rule.names.at(-1)}` : '';
  throw wrong(rule, text, `must be from ${rule.min} to ${rule.max}${names}`);
}

function stepOf(text: string, item: string, rule: FieldRule): number {
  const most = rule.last - rule.min + 1;
  const step = text.length <= 3 ? Number(text) : Number.NaN;
  if (step >= 1 && step <= most) return step;
  throw wrong(rule, item, `has a step of ${text}, which must be from 1 to ${most}`);
}

function sundayHint(end: string, rule: FieldRule): string {
  return rule === WEEKDAY && (end === '0' || end.toUpperCase() === 'SUN')
    ? ' (at the end of a range, Sunday is 7)'
    : '';
}

function notUnderstood(item: string, rule: FieldRule): ScheduleError {
  if (item === '?')
    return wrong(rule, item, 'is only for the day of month and the day of week, and stands alone');
  return wrong(rule, item, 'is not understood');
}

/** An error about a part of a field. */
export function wrong(rule: FieldRule, part: string, reason: string): ScheduleError {
  return new ScheduleError('/cron', `"${part}" ${reason}`, rule.field);
}

/** The values that one field of a cron expression matches, prepared for counting and searching. */
export class ValueSet {
  /** In ascending order, each once. */
  readonly values: readonly number[];
  /** `below[n]` is how many values are less than n, for n from 0 to `max + 1`. */
  private readonly below: Uint8Array;

  constructor(values: Iterable<number>, max: number) {
    const present = new Uint8Array(max + 1);
    for (const value of values) present[value] = 1;
    this.below = new Uint8Array(max + 2);
    const sorted: number[] = [];
    for (let value = 0; value <= max; value++) {
      if (present[value] === 1) sorted.push(value);
      this.below[value + 1] = sorted.length;
    }
    this.values = sorted;
  }

  get size(): number {
    return this.values.length;
  }

  has(value: number): boolean {
    return this.below[value + 1] !== this.below[value];
  }

  countBelow(value: number): number {
    return this.below[value]!;
  }
}

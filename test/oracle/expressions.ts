/** Expressions to try: a table with every form of the dialect, and random ones. */

import type { Random } from './random.js';

/** Every form that the dialect has, with five fields. All of them must be accepted. */
export const TABLE: readonly string[] = [
  '@yearly',
  '@annually',
  '@monthly',
  '@weekly',
  '@daily',
  '@midnight',
  '@hourly',
  '* * * * *',
  '*/15 * * * *',
  '*/7 0-23 * * *',
  '11 */1 ? * ?',
  '0 0 * * *',
  '30 0 * * *',
  '59 23 * * *',
  '*/20 23,0,1 * * *',
  '30 1 * * *',
  '30 2 * * *',
  '30 3 * * *',
  '5/10 1-3 * * *',
  '0 */2 * * *',
  '0 1/2 * * *',
  '*/30 1-23 * * *',
  '45 0-22 * * *',
  '1-59/2 2 * * *',
  '0 12 L * *',
  '15 2 L * ?',
  '30 1,2 L-3 * *',
  '30 2 15W * *',
  '30 2 LW * *',
  '30 0-3 1W,L-1,20 * *',
  '30 2 * * 7',
  '30 2 * * 0',
  '30 2 ? * SUN',
  '30 1-3 * * 0L',
  '30 1-3 * * SUN#2',
  '30 1-3 * * 5L,sat#1',
  '0 2 1-7 * SUN',
  '0 2 */2 * SUN',
  '15 1-2 8-14 mar,Nov sun',
  '0 4 25-31 MAR-OCT *',
  '0 0-6/3 * */3 *',
  '20 2 * 3-11/1 FRI-7',
  '40 1 29 2 *',
];

/** The same with a field for seconds. */
export const TABLE_WITH_SECONDS: readonly string[] = [
  '* * * * * *',
  '*/10 * * * * *',
  '30 */5 * * * *',
  '0 30 2 * * *',
  '59 59 0-4 * * *',
  '15,45 0/20 1-3 * * *',
  '7-50/11 * 2 * * SUN',
  '1 0 0 L * *',
];

const MONTHS = ['jan', 'FEB', 'Mar', 'APR', 'may', 'JUN', 'jul', 'AUG', 'SEP', 'oct', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'mon', 'Tue', 'WED', 'thu', 'FRI', 'sat'];

/** An expression of the dialect; small hours come often, because that is when the clocks change. */
export function randomExpression(random: Random, withSeconds = false): string {
  const fields = [
    field(random, 0, 59, 8),
    random.oneIn(2) ? field(random, 0, 4, 8, 23) : field(random, 0, 23, 5),
    random.oneIn(2) ? '*' : dayOfMonth(random),
    random.oneIn(2) ? '*' : named(random, field(random, 1, 12, 3), MONTHS, 1),
    random.oneIn(2) ? '*' : dayOfWeek(random),
  ];
  if (withSeconds) fields.unshift(random.oneIn(3) ? String(random.between(0, 59)) : field(random, 0, 59, 4));
  return fields.join(' ');
}

/** An expression that names one day of a year at most. */
export function randomYearly(random: Random): string {
  const minute = field(random, 0, 59, 8);
  const hour = field(random, 0, 4, 8, 23);
  const month = random.pick(MONTHS);
  const days = [
    '29 FEB *',
    `${random.between(1, 31)} ${month} *`,
    `${random.between(1, 31)}W ${month} ?`,
    `L-${random.between(0, 30)} ${month} *`,
    `LW ${month} *`,
    `? ${month} ${random.pick(WEEKDAYS)}#${random.between(1, 5)}`,
    `* ${month} ${random.between(0, 7)}L`,
  ];
  return `${minute} ${hour} ${random.pick(days)}`;
}

/** A list of one to three items between two values. */
function field(random: Random, least: number, greatest: number, anyOneIn: number, end = greatest): string {
  if (random.oneIn(anyOneIn)) return '*';
  const items = random.pick([1, 1, 1, 2, 3]);
  return Array.from({ length: items }, () => item(random, least, greatest, end)).join(',');
}

function item(random: Random, least: number, greatest: number, end: number): string {
  const from = random.between(least, greatest);
  const to = random.between(from, greatest);
  const step = random.between(1, Math.max(1, Math.floor((end - least) / 2)));
  switch (random.between(1, 8)) {
    case 1:
      return `*/${step}`;
    case 2:
      return `${from}/${step}`;
    case 3:
      return `${from}-${to}/${step}`;
    case 4:
    case 5:
      return `${from}-${to}`;
    default:
      return String(from);
  }
}

function dayOfMonth(random: Random): string {
  const one = () => {
    switch (random.between(1, 8)) {
      case 1:
        return 'L';
      case 2:
        return `L-${random.between(1, 30)}`;
      case 3:
        return `${random.between(1, 31)}W`;
      case 4:
        return 'LW';
      default:
        return field(random, 1, 31, 1000);
    }
  };
  if (random.oneIn(10)) return '?';
  return random.oneIn(4) ? `${one()},${one()}` : one();
}

function dayOfWeek(random: Random): string {
  const day = () => (random.oneIn(2) ? random.pick(WEEKDAYS) : String(random.between(0, 7)));
  const one = () => {
    switch (random.between(1, 6)) {
      case 1:
        return `${day()}L`;
      case 2:
        return `${day()}#${random.between(1, 5)}`;
      case 3:
        return day();
      default:
        return named(random, field(random, 0, 6, 1000), WEEKDAYS, 0);
    }
  };
  if (random.oneIn(10)) return '?';
  return random.oneIn(4) ? `${one()},${one()}` : one();
}

/** Writes some of the numbers as names; those behind a slash are steps and stay as they are. */
function named(random: Random, text: string, names: readonly string[], first: number): string {
  return text.replace(/(?<![/\d])\d+/g, (digits) =>
    random.oneIn(2) ? names[Number(digits) - first]! : digits,
  );
}

/** Holds the product's timetables against the oracle's lists of moments. */

import { type Timetable, type Timing, timetable } from '../../src/core/schedule/timetable.js';
import { dueMoments, namedTimes, POLICIES, type Policy } from './due-moments.js';
import { readExpression } from './expression.js';
import type { Random } from './random.js';
import { DAY, fieldsOf, type NamedTime, type Walked } from './walk.js';

export const UNBOUNDED = { startAt: null, endAt: null };

/** How much was compared, so that a run can say so. */
export interface Tally {
  comparisons: number;
  moments: number;
  questions: number;
}

export const newTally = (): Tally => ({ comparisons: 0, moments: 0, questions: 0 });

/** A stretch of time with all the moments at which a schedule must be due in it; `from` is included, `to` is not. */
export interface Expected {
  readonly about: string;
  readonly from: number;
  readonly to: number;
  readonly moments: readonly number[];
}

/** Compares an expression under several policies with a walk; returns what differs, in words. */
export function compareWithWalk(
  text: string,
  policies: readonly Policy[],
  walked: Walked,
  random: Random,
  tally: Tally,
): string[] {
  const expression = readExpression(text);
  const { timezone, from, to } = walked;
  const named = namedTimes(expression, walked);
  return policies.flatMap((dst) => {
    const moments = dueMoments(expression, dst, walked, named);
    const about = `${text} in ${timezone}, ${dst.gap} and ${dst.overlap}`;
    const timing = { kind: 'cron', expression: text, timezone, dst } as const;
    return compareCron(timing, { about, from, to, moments }, random, tally, (table) =>
      expression.everyHour ? [] : wrongNotes(table, named, moments, dst, about),
    );
  });
}

/** Compares with a walk under every policy, or under one where the policies make no difference. */
export function compareWherePoliciesMatter(
  text: string,
  walked: Walked,
  random: Random,
  tally: Tally,
): string[] {
  const policies = readExpression(text).everyHour ? [random.pick(POLICIES)] : POLICIES;
  return compareWithWalk(text, policies, walked, random, tally);
}

/** Compares a cron expression with a list; the product may refuse it only if it names no date at all. */
export function compareCron(
  timing: Timing & { kind: 'cron' },
  expected: Expected,
  random: Random,
  tally: Tally,
  more: (table: Timetable) => string[] = () => [],
): string[] {
  let table: Timetable;
  try {
    table = timetable(timing, UNBOUNDED);
  } catch (error) {
    return namesSomeDate(timing.expression) ? [`${expected.about}: refused, ${String(error)}`] : [];
  }
  return [...compare(table, expected, random, tally), ...more(table)];
}

/** Whether an expression names a date in the 400 years after which the calendar repeats itself. */
function namesSomeDate(text: string): boolean {
  const expression = readExpression(text);
  for (let date = Date.UTC(2000, 0, 1); date < Date.UTC(2400, 0, 1); date += DAY) {
    if (expression.namesDate(fieldsOf(date))) return true;
  }
  return false;
}

/** Compares a timetable with a list: forwards, backwards, by count and at random. */
export function compare(table: Timetable, expected: Expected, random: Random, tally: Tally): string[] {
  tally.comparisons += 1;
  tally.moments += expected.moments.length;
  const differences: string[] = [];
  const check = (question: string, answer: unknown, wanted: unknown) => {
    tally.questions += 1;
    if (answer === wanted) return;
    differences.push(`${expected.about}: ${question} is ${iso(answer)}, expected ${iso(wanted)}`);
  };
  checkEach(table, expected, check);
  for (let round = 0; round < 4; round += 1) checkMoment(table, expected, random, check);
  for (let round = 0; round < 4; round += 1) checkRange(table, expected, random, check);
  return differences.slice(0, 3);
}

type Check = (question: string, answer: unknown, wanted: unknown) => void;

/** Goes through all moments in both directions, one past the end, and counts them. */
function checkEach(table: Timetable, { from, to, moments }: Expected, check: Check): void {
  let at = from - 1;
  for (const moment of [...moments, undefined]) {
    const next = table.next(at);
    check(`the next after ${iso(at)}`, next !== null && next < to ? next : undefined, moment);
    if (next !== moment) break;
    at = next as number;
  }
  at = to - 1;
  for (const moment of [...moments.toReversed(), undefined]) {
    const previous = table.previous(at);
    check(`the last until ${iso(at)}`, previous !== null && previous >= from ? previous : undefined, moment);
    if (previous !== moment) break;
    at = (previous as number) - 1;
  }
  check(`the count of ${iso(from)} to ${iso(to)}`, table.count(from - 1, to - 1), moments.length);
}

/** An occurrence is the next one before it, the last one at it, and counts at the end of a range, not at its beginning. */
function checkMoment(table: Timetable, { moments }: Expected, random: Random, check: Check): void {
  if (moments.length === 0) return;
  const at = random.pick(moments);
  check(`the next before ${iso(at)}`, table.next(at - 1), at);
  check(`the last at ${iso(at)}`, table.previous(at), at);
  check(`the count that ends at ${iso(at)}`, table.count(at - 1, at), 1);
  check(`the count that begins at ${iso(at)}`, table.count(at, at), 0);
}

/** Asks all three questions about a random range, which often begins or ends at an occurrence. */
function checkRange(table: Timetable, { from, to, moments }: Expected, random: Random, check: Check): void {
  const somewhere = () =>
    moments.length > 0 && random.oneIn(2) ? random.pick(moments) : random.between(from - 1, to - 1);
  const [after, until] = [somewhere(), somewhere()].sort((one, other) => one - other) as [number, number];
  const inside = moments.filter((moment) => moment > after && moment <= until);
  check(`the count after ${iso(after)} until ${iso(until)}`, table.count(after, until), inside.length);
  const next = table.next(after);
  const wanted = moments.find((moment) => moment > after);
  check(`the next after ${iso(after)}`, next !== null && next < to ? next : undefined, wanted);
  const previous = table.previous(until);
  const wantedBefore = moments.findLast((moment) => moment <= until);
  check(
    `the last until ${iso(until)}`,
    previous !== null && previous >= from ? previous : undefined,
    wantedBefore,
  );
}

/** A moment has a note exactly when it was moved out of a gap or is one of two passes of an overlap. */
function wrongNotes(
  table: Timetable,
  named: readonly NamedTime[],
  moments: readonly number[],
  { gap }: Policy,
  about: string,
): string[] {
  const special = new Set(
    named.flatMap((time) => {
      if (time.shifted !== undefined) return gap === 'shift' ? [time.shifted] : [];
      return time.moments.length > 1 ? time.moments : [];
    }),
  );
  return moments
    .filter((moment) => (table.note(moment) !== undefined) !== special.has(moment))
    .map((moment) => `${about}: the note of ${iso(moment)} is ${table.note(moment)}`)
    .slice(0, 3);
}

function iso(value: unknown): string {
  return typeof value === 'number' && value > 1e6 ? new Date(value).toISOString() : String(value);
}

/**
 * When schedules are due.
 *
 * A cron expression names wall-clock times in its zone (see parse-cron.ts for the dialect). What that means when
 * clocks change:
 *
 * 1. When the hour field matches all 24 hours, however written (`*`, `0-23`, a step of 1), the DST policy does not
 *    apply. The schedule is due at every real moment whose wall-clock time matches: every 15 minutes stays every 15
 *    real minutes; in an overlap both passes count, and in a gap there is no occurrence.
 * 2. Otherwise, for each wall-clock time that matches:
 *    - it exists once: that is the moment.
 *    - it exists twice (overlap): `first` (default) is the earlier moment, `last` the later one, `both` are both.
 *    - it does not exist (gap): `skip` leaves it out; `shift` (default) moves it forward by the length of the gap,
 *      which is the wall-clock time read with the offset in force before the gap (02:30 in a gap of one hour runs
 *      at 03:30 new time), as "compatible" in Temporal does.
 * 3. Occurrences are moments: where two wall-clock times give the same moment, it is one occurrence.
 * 4. Day fields are matched against the date of the named time, before any shift.
 * 5. With five fields the second is 0. Offsets with seconds (before about 1930) follow the same rules.
 *
 * `every` is due at `from` and then in even steps of real time; `at` is due once.
 */
import { CronTimetable } from './cron-timetable.js';
import { parseCron } from './parse-cron.js';
import { zoneOf } from './timezone.js';

/** What happens to wall-clock times that a change of the clocks skips or repeats. */
export interface Dst {
  readonly gap: 'shift' | 'skip';
  readonly overlap: 'first' | 'last' | 'both';
}

/** The part of a schedule that says when it is due. */
export type Timing =
  | { readonly kind: 'at'; readonly at: number }
  | { readonly kind: 'every'; readonly everyMs: number; readonly from: number }
  | { readonly kind: 'cron'; readonly expression: string; readonly timezone: string; readonly dst: Dst };

/** When a schedule is due. `startAt` and `endAt` are inclusive bounds (null = none). */
export interface Timetable {
  /** The first occurrence strictly after the moment, or null when there is none. */
  next(after: number): number | null;
  /** The last occurrence at or before the moment, or null. */
  previous(atOrBefore: number): number | null;
  /** How many occurrences lie in (after, until], computed without iterating over them. */
  count(after: number, until: number): number;
  /** What a preview says about an occurrence near a DST change, or undefined. */
  note(at: number): string | undefined;
}

/** The first and last moment of the years 1 to 9999. */
const FIRST_MOMENT = -62_135_596_800_000;
const LAST_MOMENT = 253_402_300_799_999;

/** The timetable of a schedule; throws a ScheduleError when the expression or the zone is wrong. */
export function timetable(
  timing: Timing,
  bounds: { startAt: number | null; endAt: number | null },
): Timetable {
  const start = Math.max(bounds.startAt ?? FIRST_MOMENT, FIRST_MOMENT);
  const end = Math.min(bounds.endAt ?? LAST_MOMENT, LAST_MOMENT);
  return within(unbounded(timing), start, end);
}

function unbounded(timing: Timing): Timetable {
  switch (timing.kind) {
    case 'at':
      return once(timing.at);
    case 'every':
      return steps(timing.from, timing.everyMs);
    case 'cron':
      return new CronTimetable(parseCron(timing.expression), zoneOf(timing.timezone), timing.dst);
  }
}

function once(at: number): Timetable {
  return {
    next: (after) => (after < at ? at : null),
    previous: (atOrBefore) => (atOrBefore >= at ? at : null),
    count: (after, until) => (after < at && at <= until ? 1 : 0),
    note: () => undefined,
  };
}

function steps(from: number, everyMs: number): Timetable {
  /** How many occurrences lie at or before a moment. */
  const over = (moment: number) => Math.max(0, Math.floor((moment - from) / everyMs) + 1);
  return {
    next: (after) => from + over(after) * everyMs,
    previous: (atOrBefore) => (atOrBefore < from ? null : from + (over(atOrBefore) - 1) * everyMs),
    count: (after, until) => over(until) - over(after),
    note: () => undefined,
  };
}

function within(table: Timetable, start: number, end: number): Timetable {
  return {
    next: (after) => {
      const found = after >= end ? null : table.next(Math.max(after, start - 1));
      return found !== null && found <= end ? found : null;
    },
    previous: (atOrBefore) => {
      const found = atOrBefore < start ? null : table.previous(Math.min(atOrBefore, end));
      return found !== null && found >= start ? found : null;
    },
    count: (after, until) => {
      const first = Math.max(after, start - 1);
      const last = Math.min(until, end);
      return last > first ? table.count(first, last) : 0;
    },
    note: (at) => (at >= start && at <= end ? table.note(at) : undefined),
  };
}

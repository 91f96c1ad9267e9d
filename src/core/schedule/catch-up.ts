import type { Timetable } from './timetable.js';

/** Which of the occurrences that were missed during a downtime still run. */
export type CatchUp = 'none' | 'latest' | 'all' | { readonly withinMs: number };

/** Consecutive occurrences: the first, the last and how many they are. */
export interface OccurrenceRange {
  readonly from: number;
  readonly until: number;
  readonly count: number;
}

/** The decision about the occurrences of a range. */
interface CaughtUp {
  readonly run: number[];
  readonly passedOver: OccurrenceRange[];
  /** Everything up to here is decided. If `run` was cut at `max`, call again from here with the same `now`. */
  readonly watermark: number;
}

/**
 * Decides the occurrences in (watermark, now]. Those that are at most `graceMs` late are on time and always run. The
 * others were missed, and the policy says which of them still run: `none`, the `latest` one, `all`, or those at most
 * `withinMs` ago. The occurrences that do not run are all older than those that do, so they are one range, which is
 * computed without iterating over it.
 */
export function catchUp(
  table: Timetable,
  policy: CatchUp,
  watermark: number,
  now: number,
  graceMs: number,
  max: number,
): CaughtUp {
  if (now <= watermark) return { run: [], passedOver: [], watermark };
  const onTimeAfter = Math.min(now - graceMs, now - 1);
  const runAfter = Math.max(
    watermark,
    Math.min(onTimeAfter, lastToPassOver(table, policy, now, onTimeAfter)),
  );
  const passedOver = rangeBetween({ table }, watermark, runAfter);
  const run: number[] = [];
  let due = table.next(runAfter);
  while (due !== null && due <= now && run.length < max) {
    run.push(due);
    due = table.next(due);
  }
  const isCut = due !== null && due <= now;
  const reached = run.at(-1) ?? runAfter;
  return { run, passedOver: passedOver ? [passedOver] : [], watermark: isCut ? reached : now };
}

/** The moment up to which the policy passes everything over. */
function lastToPassOver(table: Timetable, policy: CatchUp, now: number, onTimeAfter: number): number {
  if (policy === 'all') return Number.NEGATIVE_INFINITY;
  if (policy === 'none') return onTimeAfter;
  if (policy === 'latest') return (table.previous(onTimeAfter) ?? onTimeAfter) - 1;
  return now - policy.withinMs - 1;
}

/** The occurrences in (after, until] as one range; null when there are none. */
export function rangeBetween(
  { table }: { readonly table: Timetable },
  after: number,
  until: number,
): OccurrenceRange | null {
  const from = table.next(after);
  if (from === null || from > until) return null;
  return { from, until: table.previous(until)!, count: table.count(after, until) };
}

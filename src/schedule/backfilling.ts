import { invalid } from '../core/errors.js';
import type { ParsedSchedule } from '../core/schedule-definition.js';
import { type PassedOverRow, putBackPassedOver, readRuns, takePassedOver } from '../store/backfill.js';
import { Batcher } from '../store/batcher.js';
import { insertScheduledJobs, recordOccurrences } from '../store/fire-occurrences.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { toWaiting } from '../store/new-waiting.js';
import { ledgerKnownSince } from '../store/occurrences.js';
import type { ScheduleRow } from '../store/schedules.js';
import type { Firing } from './firing.js';
import type { Leader } from './leader.js';
import { FIRE_AHEAD_MS, planJob, rangeBetween, ranRow } from './plan-firing.js';

/** Occurrences that one request may run. */
export const MAX_BACKFILL = 10_000;
/** What is made in one transaction. */
const LIMITS = { items: 1_000, bytes: 8 * 1024 * 1024 };

export interface BackfillRange {
  readonly from: number;
  readonly to: number;
  readonly dryRun: boolean;
}

/** The occurrences without a run on record, which run now unless it was only asked for them. */
export interface Backfill {
  readonly occurrences: readonly number[];
}

/** Runs the occurrences of a past time that have no run on record; each takes the place of its gap in the ledger. */
export async function backfill(
  leader: Leader,
  firing: Firing,
  schedule: ScheduleRow,
  { from, to, dryRun }: BackfillRange,
): Promise<Backfill> {
  const parsed = firing.parsing.parse(schedule);
  const { table } = parsed;
  const count = table.count(from - 1, to);
  if (count > MAX_BACKFILL) {
    const detail = `the range holds ${count} occurrences; at most ${MAX_BACKFILL} run in one request`;
    throw invalid([{ pointer: '/to', detail }]);
  }
  const runs = await readRuns(leader.hot, schedule.id, from, to);
  await mustBeKnown(leader, schedule, from);
  const missing: number[] = [];
  for (let at = table.next(from - 1); at !== null && at <= to; at = table.next(at)) {
    if (!runs.has(at)) missing.push(at);
  }
  if (dryRun) return { occurrences: missing };
  const size = parsed.job.payload.length + 256;
  const batcher = new Batcher<number>(LIMITS, () => size);
  await batcher.run(
    missing,
    (ats) => fill(leader, firing, schedule, parsed, ats),
    // All of them are alike: what one cannot have, none can.
    (_, error) => Promise.reject(error),
  );
  return { occurrences: missing };
}

/**
 * Refuses a time of which the ledger has forgotten what ran: it would run again. To be asked after the runs were read, so
 * that none of them can have been forgotten unseen. Nothing is forgotten of a schedule that is younger than what is.
 */
async function mustBeKnown(leader: Leader, schedule: ScheduleRow, from: number): Promise<void> {
  const { clock, config, hot } = leader;
  const since = Math.max(await ledgerKnownSince(hot), clock.now() - config.ledgerRetention);
  // Occurrences are recorded some time ahead.
  if (schedule.created_at >= since || from >= since + FIRE_AHEAD_MS) return;
  const known = new Date(since + FIRE_AHEAD_MS).toISOString();
  const detail = `the ledger is known from ${known} on; what ran before it is forgotten, and would run again`;
  throw invalid([{ pointer: '/from', detail }]);
}

async function fill(
  leader: Leader,
  firing: Firing,
  schedule: ScheduleRow,
  parsed: ParsedSchedule,
  ats: readonly number[],
): Promise<void> {
  const now = leader.clock.now();
  const first = ats[0]!;
  const last = ats.at(-1)!;
  const planned = ats.map((at) => planJob(parsed, at, now, now));
  const jobs = await firing.makeJobs(planned.map((job) => ({ schedule, job })));
  // Nobody is to be alarmed because work of the past starts late.
  const rows = planned.map((job) =>
    ranRow(schedule, parsed, job, now, { reason: 'backfill', judgeAt: null }),
  );
  const made = await leader.write(() =>
    leaderTransaction(leader.hot, leader.term, async (db) => {
      const passedOver = await takePassedOver(db, schedule.id, first, last);
      const left = passedOver.flatMap((row) => remainders(parsed, row, ats));
      await putBackPassedOver(db, schedule, left);
      const recorded = await recordOccurrences(db, rows, now);
      const made = jobs.filter((job) => recorded.has(job.row.id));
      await insertScheduledJobs(db, made, now);
      return made;
    }),
  );
  await leader.admit(made.map(({ row }) => toWaiting(row)));
}

/** What a row of passed-over occurrences still says when the given ones, all of a time, are run. */
function remainders(parsed: ParsedSchedule, row: PassedOverRow, ats: readonly number[]): PassedOverRow[] {
  const until = row.until ?? row.at;
  const first = ats[0]!;
  const last = ats.at(-1)!;
  // It was recorded under another timetable, and cannot be taken apart by this one.
  if (parsed.table.count(row.at - 1, until) !== row.count) return lessened(row, ats);
  const parts = [
    rangeBetween(parsed, row.at - 1, Math.min(until, first - 1)),
    rangeBetween(parsed, Math.max(row.at - 1, last), until),
  ];
  return parts
    .filter((part) => part !== null)
    .map((part) => ({
      ...row,
      at: part.from,
      until: part.count > 1 ? part.until : null,
      count: part.count,
    }));
}

/**
 * A row whose moments are not known one by one, but for its first and its last. Where the first is run, the row goes on
 * right after it, so that the run can have its place.
 */
function lessened(row: PassedOverRow, ats: readonly number[]): PassedOverRow[] {
  const until = row.until ?? row.at;
  const starts = ats.includes(row.at);
  const ends = row.count > 1 && ats.includes(until);
  const count = row.count - Number(starts) - Number(ends);
  if (count === 0) return [];
  if (row.count === 2 && count === 1) return [{ ...row, at: starts ? until : row.at, until: null, count }];
  return [{ ...row, at: starts ? row.at + 1 : row.at, until: ends ? until - 1 : row.until, count }];
}

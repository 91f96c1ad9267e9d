import { invalid } from '../core/errors.js';
import { rangeBetween } from '../core/schedule/catch-up.js';
import type { ParsedSchedule } from '../core/schedule-definition.js';
import { type PassedOverRow, putBackPassedOver, readRuns, takePassedOver } from '../store/backfill.js';
import { Batcher } from '../store/batcher.js';
import type { Queryable } from '../store/database.js';
import { recordOccurrences } from '../store/fire-occurrences.js';
import { type Keep, keepLast } from '../store/idempotency.js';
import { ledgerKnownSince } from '../store/occurrences.js';
import type { ScheduleRow } from '../store/schedules.js';
import { MAX_GRAPH_JOBS, type OccurrenceFirer } from './occurrence-firer.js';
import { FIRE_AHEAD_MS, type GoodRun, planRun, ranRow } from './plan-firing.js';
import type { ScheduleLeader } from './schedule-leader.js';
import { sizeOf } from './scheduled-runs.js';

/** Occurrences that one request may run. */
const MAX_BACKFILL = 10_000;
/** Jobs, and their bytes, that one transaction makes. */
const LIMITS = { items: 1_000, bytes: 8 * 1024 * 1024 };

/** The range of time that is filled, both ends included. */
export interface BackfillRange {
  readonly from: number;
  readonly to: number;
  readonly dryRun: boolean;
}

/** The occurrences that had no run in the ledger. They run now, unless it was a dry run. */
export interface Backfill {
  readonly occurrences: readonly number[];
}

/** Runs the occurrences of a past range that have no run in the ledger, where each replaces its gap. */
export async function backfill(
  leader: ScheduleLeader,
  firer: OccurrenceFirer,
  schedule: ScheduleRow,
  { from, to, dryRun }: BackfillRange,
  keep?: Keep<Backfill>,
): Promise<Backfill> {
  const parsed = await firer.parse(schedule);
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
  const run = await firer.runs.load(schedule.tenant, parsed.work);
  if (run.kind === 'refused') throw run.error;
  const { jobs, bytes } = sizeOf(run);
  const items = Math.max(1, Math.min(LIMITS.items, Math.floor(MAX_GRAPH_JOBS / jobs)));
  const batcher = new Batcher<number>({ ...LIMITS, items }, () => bytes);
  await batcher.run(
    missing,
    (ats) => {
      const isLast = ats.at(-1) === missing.at(-1);
      const keepIt = keep && isLast ? (db: Queryable) => keep(db, { occurrences: missing }) : undefined;
      return fill(leader, firer, { schedule, parsed, run }, ats, keepIt);
    },
    // All jobs are alike: an error about one holds for all.
    (_, error) => Promise.reject(error),
  );
  return { occurrences: missing };
}

/**
 * Refuses a range that reaches back beyond the ledger's retention: occurrences that ran would run again. To be called
 * after the runs were read, or runs could be removed between the check and the read. A schedule that is younger than
 * the retention has lost nothing.
 */
async function mustBeKnown(leader: ScheduleLeader, schedule: ScheduleRow, from: number): Promise<void> {
  const { clock, config, hot } = leader;
  const since = Math.max(await ledgerKnownSince(hot), clock.now() - config.ledgerRetention);
  // An occurrence is recorded up to this long before its moment, and is forgotten by when it was recorded.
  if (schedule.created_at >= since || from >= since + FIRE_AHEAD_MS) return;
  const known = new Date(since + FIRE_AHEAD_MS).toISOString();
  const detail = `the ledger is known from ${known} on; what ran before it is forgotten, and would run again`;
  throw invalid([{ pointer: '/from', detail }]);
}

async function fill(
  leader: ScheduleLeader,
  firer: OccurrenceFirer,
  { schedule, parsed, run }: { schedule: ScheduleRow; parsed: ParsedSchedule; run: GoodRun },
  ats: readonly number[],
  keep: Keep<void> | undefined,
): Promise<void> {
  const now = leader.clock.now();
  const first = ats[0]!;
  const last = ats.at(-1)!;
  const planned = ats.map((at) => planRun(run, at, now, now));
  // No lateness check: work of the past is always late.
  const rows = planned.map((each) =>
    ranRow(schedule, parsed, each, now, { reason: 'backfill', judgeAt: null }),
  );
  const making = planned.map((each) => ({ schedule, planned: each }));
  const stored = await firer.write(making, async (db, made) => {
    const passedOver = await takePassedOver(db, schedule.id, first, last);
    const left = passedOver.flatMap((row) => remainders(parsed, row, ats));
    await putBackPassedOver(db, schedule, left);
    const inserted = await firer.insert(db, made, await recordOccurrences(db, rows, now), now);
    await keepLast(db, keep, undefined);
    return inserted;
  });
  await firer.stored(stored);
}

/** What remains of a row of passed-over occurrences when the given ones, all in a range, are run. */
function remainders(parsed: ParsedSchedule, row: PassedOverRow, ats: readonly number[]): PassedOverRow[] {
  const until = row.until ?? row.at;
  const first = ats[0]!;
  const last = ats.at(-1)!;
  // The row was recorded under another timetable, so this one cannot say which moments it stands for.
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
 * The same for a row of which only the first and the last moment are known. If the first is run, the row begins a
 * millisecond later, because the ledger is unique by moment.
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

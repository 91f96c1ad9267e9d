import type { Figures } from '../core/figures.js';
import { parseTimetable } from '../core/schedule-definition.js';
import { ForecastQuery, ForecastView as ForecastSchema } from '../core/schemas/ahead.js';
import { TimeSlice } from '../core/time-slice.js';
import { FIRST_UUID } from '../core/uuid.js';
import type { ForecastView } from '../core/wire.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import { countLater, isFullPortion, readSchedulesAhead, type ScheduleAhead } from '../store/jobs-ahead.js';
import { forbidden, limitsOf } from './restrictions.js';
import { type Route, route } from './route.js';
import type { Shard } from './shard.js';

const MINUTE_MS = 60_000;
/** Rows of jobs and of schedules that one answer looks at, whosever they are. */
const MOST_LATER = 200_000;
const MOST_SCHEDULES = 2_000;
/** Schedules that are named because they are due next. */
const MOST_SOONEST = 10;
/** Occurrences that one answer looks at. */
const MOST_OCCURRENCES = 200_000;
/** A herd is at least so many, and so many times the mean. */
const HERD_JOBS = 10;
const HERD_TIMES = 4;

/** What becomes due ahead, and what it takes to do it in time. */
export const forecastRoutes: readonly Route[] = [
  route({
    id: 'getForecast',
    method: 'GET',
    path: '/v1/forecast',
    tag: 'cluster',
    summary:
      'How much becomes due in each minute ahead, by jobs and schedules, and how many slots that wants.',
    scope: 'read',
    query: ForecastQuery,
    answers: { 200: ForecastSchema },
    run: async ({ node, caller, query: { minutes } }): Promise<ForecastView> => {
      if (limitsOf(caller)) throw forbidden('A restricted key is not shown what is due in all queues.');
      const shard = node.shardOf(caller.tenant);
      const tenant = caller.allTenants ? null : caller.tenant;
      const leader = await shard.leader();
      return shared(shard, `${minutes} ${tenant ?? ''}`, () => forecastOf(shard, leader, tenant, minutes));
    },
  }),
];

/** Forecasts that are being made: they look at many rows, so whoever asks for the same at the same time gets the same. */
const underWay = new WeakMap<Shard, Map<string, Promise<ForecastView>>>();

function shared(shard: Shard, asked: string, make: () => Promise<ForecastView>): Promise<ForecastView> {
  const ofShard = underWay.get(shard) ?? new Map<string, Promise<ForecastView>>();
  underWay.set(shard, ofShard);
  const found = ofShard.get(asked);
  if (found) return found;
  const made = make().finally(() => ofShard.delete(asked));
  ofShard.set(asked, made);
  return made;
}

async function forecastOf(
  shard: Shard,
  { waitingJobs }: Dispatcher,
  tenant: string | null,
  minutes: number,
): Promise<ForecastView> {
  const from = Math.floor(shard.clock.now() / MINUTE_MS) * MINUTE_MS;
  const jobs = Array.from({ length: minutes }, () => 0);
  const occurrences = Array.from({ length: minutes }, () => 0);
  const live = await waitingJobs.upcoming(tenant, from, minutes);
  for (const [i, count] of live.counts.entries()) jobs[i]! += count;
  const isAllLater = await countLater(shard.pool, tenant, from, jobs, MOST_LATER);
  const soonest = await firstSchedules(shard, tenant);
  const isAllDue = await countOccurrences(shard, tenant, from, occurrences);
  const figures = await shard.figures();
  const averageRunMs = figures && averageRun(figures);
  return {
    ...viewOf(from, jobs, occurrences, averageRunMs),
    soonest,
    slots: figures?.totals.slots ?? null,
    complete: live.complete && isAllLater && isAllDue,
  };
}

function viewOf(
  from: number,
  jobs: readonly number[],
  occurrences: readonly number[],
  averageRunMs: number | null,
): Omit<ForecastView, 'slots' | 'soonest' | 'complete'> {
  const totals = jobs.map((count, i) => count + occurrences[i]!);
  const mean = totals.reduce((sum, each) => sum + each, 0) / totals.length;
  const wanted = (total: number) =>
    averageRunMs === null ? null : Math.ceil((total * averageRunMs) / MINUTE_MS);
  const data = totals.map((total, i) => ({
    at: new Date(from + i * MINUTE_MS).toISOString(),
    jobs: jobs[i]!,
    occurrences: occurrences[i]!,
    herd: total >= HERD_JOBS && total > HERD_TIMES * mean,
    slotsWanted: wanted(total),
  }));
  return { data, next: null, averageRunMs, slotsWanted: wanted(totals.reduce((a, b) => Math.max(a, b), 0)) };
}

/** Null while no attempt has ended. */
function averageRun({ attempts }: Figures): number | null {
  let [count, sum] = [0, 0];
  for (const { runTime } of attempts) {
    sum += runTime.sumMs;
    for (const each of runTime.counts) count += each;
  }
  return count === 0 ? null : Math.ceil(sum / count);
}

/** The schedules that are due next, whenever that is. */
async function firstSchedules(shard: Shard, tenant: string | null): Promise<ForecastView['soonest']> {
  const now = shard.clock.now();
  const found: { readonly tenant: string; readonly schedule: string; readonly at: number }[] = [];
  let last: Pick<ScheduleAhead, 'fireAt' | 'id'> = { fireAt: 0, id: FIRST_UUID };
  for (let read = 0; read < MOST_SCHEDULES && found.length < MOST_SOONEST; ) {
    const schedules = await readSchedulesAhead(shard.pool, last, Number.MAX_SAFE_INTEGER);
    for (const schedule of schedules) {
      if (tenant !== null && schedule.tenant !== tenant) continue;
      const table = parseTimetable(JSON.parse(schedule.timing), schedule.createdAt);
      // The leader makes a job shortly before it is due.
      const at = table.next(Math.max(now, schedule.fireAt - 1));
      if (at !== null) found.push({ tenant: schedule.tenant, schedule: schedule.name, at });
    }
    if (!isFullPortion(schedules)) break;
    read += schedules.length;
    last = schedules.at(-1)!;
  }
  return found
    .sort((a, b) => a.at - b.at)
    .slice(0, MOST_SOONEST)
    .map(({ at, ...which }) => ({ ...which, at: new Date(at).toISOString() }));
}

/** Adds the occurrences of schedules; answers whether these are all. */
async function countOccurrences(
  shard: Shard,
  tenant: string | null,
  from: number,
  counts: number[],
): Promise<boolean> {
  const to = from + counts.length * MINUTE_MS;
  const slice = new TimeSlice();
  let last: Pick<ScheduleAhead, 'fireAt' | 'id'> = { fireAt: 0, id: FIRST_UUID };
  let room = MOST_OCCURRENCES;
  for (let read = 0; read < MOST_SCHEDULES; ) {
    const schedules = await readSchedulesAhead(shard.pool, last, to);
    for (const schedule of schedules) {
      if (tenant === null || schedule.tenant === tenant) room -= addOccurrences(schedule, from, to, counts);
      if (room <= 0) return false;
      if (slice.isOver) await slice.next();
    }
    if (!isFullPortion(schedules)) return true;
    read += schedules.length;
    last = schedules.at(-1)!;
  }
  return false;
}

/** Adds the occurrences of one schedule; answers with the number of steps that it took. */
function addOccurrences(schedule: ScheduleAhead, from: number, to: number, counts: number[]): number {
  const table = parseTimetable(JSON.parse(schedule.timing), schedule.createdAt);
  const first = Math.max(from, schedule.fireAt) - 1;
  if (table.count(first, to - 1) > counts.length) {
    // Many in each minute: they are counted without looking at each.
    for (const [i] of counts.entries()) {
      const begin = from + i * MINUTE_MS - 1;
      if (begin + MINUTE_MS > first) counts[i]! += table.count(Math.max(begin, first), begin + MINUTE_MS);
    }
    return counts.length;
  }
  let steps = 1;
  for (let at = table.next(first); at !== null && at < to; at = table.next(at)) {
    counts[Math.floor((at - from) / MINUTE_MS)]! += 1;
    steps += 1;
  }
  return steps;
}

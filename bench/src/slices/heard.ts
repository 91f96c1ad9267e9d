import type { Ledger } from '../ledger.js';
import { now, until } from '../moments.js';
import { mean } from '../statistics.js';
import type { Heard } from '../systems/listeners-process.js';
import type { HeardSystem } from '../systems/punctual-heard.js';
import type { HeardTask, SliceResult } from './slice.js';
import { allStarted, measureThroughput, problemsOf, steady } from './throughput.js';

/** A job that succeeds at once is told three times: submitted, started, succeeded. */
export const CHANGES_PER_JOB = 3;
const BULKS_PER_SECOND = 20;

/** The full load beside a steady stream of watched jobs, which count as well. */
export async function measureHeard(
  { system, submitWatched, heard }: HeardSystem,
  ledger: Ledger,
  watchedLedger: Ledger,
  { load, watchedPerSecond, listening }: HeardTask,
  progress: (text: string) => void,
): Promise<SliceResult> {
  const begin = now();
  const cpuBefore = process.cpuUsage();
  watchedLedger.begin(begin);
  const seconds = load.warmUpSeconds + load.seconds;
  const watched = submitSteadily(submitWatched, begin, seconds, watchedPerSecond);
  const both = {
    ...system,
    finish: async () => {
      await allStarted(watchedLedger, await watched);
      await system.finish();
    },
    check: async (submitted: number) => system.check(submitted + (await watched)),
  };
  const busy = await measureThroughput(both, ledger, load, progress);
  const { user, system: kernel } = process.cpuUsage(cpuBefore);
  const tookMs = now() - begin;
  const submitted = await watched;
  const told = await heard(submitted * CHANGES_PER_JOB);
  const account = await watchedLedger.account(submitted);
  const watchedRates = steady(account.perSecond, load);
  const perSecond = busy.perSecond!.map((rate, second) => rate + watchedRates[second]!);
  const jobs = busy.submitted + submitted;
  return {
    ...busy,
    ...{ submitted: jobs, perSecond, jobsPerSecond: mean(perSecond) },
    figures: {
      nodeMicrosPerJob: (user + kernel) / jobs,
      ...(told && { heardPerSecond: told.events / seconds, listenersCpu: (100 * told.cpuMs) / tookMs }),
    },
    problems: [
      ...busy.problems,
      ...problemsOf(account),
      ...(told ? unheard(told, listening.to === 'quiet' ? 0 : submitted * CHANGES_PER_JOB) : []),
    ],
  };
}

/** Submits so many jobs a second in small bulks; gives how many there were. */
async function submitSteadily(
  submit: HeardSystem['submitWatched'],
  begin: number,
  seconds: number,
  perSecond: number,
): Promise<number> {
  const bulk = Math.round(perSecond / BULKS_PER_SECOND);
  let submitted = 0;
  for (let tick = 0; tick < seconds * BULKS_PER_SECOND; tick++) {
    await until(begin + (tick * 1_000) / BULKS_PER_SECOND);
    await submit(submitted, bulk);
    submitted += bulk;
  }
  return submitted;
}

function unheard({ events, dropped, behind }: Heard, expected: number): readonly string[] {
  return [
    ...(events !== expected ? [`${events} of ${expected} events were heard`] : []),
    ...(dropped > 0 ? [`${dropped} listeners were dropped`] : []),
    ...(behind > 0 ? [`${behind} listeners have heard less than the first`] : []),
  ];
}

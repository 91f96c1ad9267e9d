import { setTimeout as pause } from 'node:timers/promises';
import type { Account, Starts } from '../ledger.js';
import { now, ticking, until } from '../moments.js';
import { mean } from '../statistics.js';
import type { System } from '../systems/system.js';
import type { Load, SliceResult } from './slice.js';

/** So long nothing may start before what has not started is called lost. */
const STALLED_MS = 20_000;

/** Submits and runs jobs side by side for the time of the load, then lets everything end and checks it. */
export async function measureThroughput(
  system: System,
  starts: Starts,
  load: Load,
  progress: (text: string) => void,
): Promise<SliceResult> {
  const begin = now();
  starts.begin(begin);
  const stopTelling = tellRates(starts, progress);
  const submitted = await submitUntil(
    system,
    starts,
    load,
    begin + (load.warmUpSeconds + load.seconds) * 1_000,
  );
  await allStarted(starts, submitted);
  await system.finish();
  stopTelling();
  const account = await starts.account(submitted);
  const perSecond = steady(account.perSecond, load);
  return {
    ...{ settings: system.settings, submitted, account, perSecond },
    jobsPerSecond: mean(perSecond),
    problems: [...problemsOf(account), ...(await system.check(submitted))],
  };
}

/** Keeps a bounded number of jobs ahead until the moment; gives how many were submitted. */
async function submitUntil(system: System, starts: Starts, load: Load, end: number): Promise<number> {
  let submitted = 0;
  const over = until(end);
  const lane = async () => {
    while (now() < end) {
      const enough = submitted + load.bulk - load.ahead;
      if (starts.started < enough) {
        await Promise.race([starts.reached(enough), over]);
        continue;
      }
      const first = submitted;
      submitted += load.bulk;
      await system.submitMany(first, load.bulk);
    }
  };
  await Promise.all(Array.from({ length: load.lanes }, lane));
  return submitted;
}

/** Resolves when so many have started, or when nothing has for too long. */
export async function allStarted(starts: Starts, submitted: number): Promise<void> {
  const all = starts.reached(submitted).then(() => true);
  for (;;) {
    const before = starts.started;
    const timer = new AbortController();
    const stalled = pause(STALLED_MS, false, { signal: timer.signal }).catch(() => false);
    const done = await Promise.race([all, stalled]);
    timer.abort();
    if (done || starts.started === before) return;
  }
}

/** The seconds that count: after the warm-up, while jobs were submitted. */
export function steady(perSecond: readonly number[], load: Load): readonly number[] {
  return Array.from({ length: load.seconds }, (_, second) => perSecond[load.warmUpSeconds + second] ?? 0);
}

export function problemsOf({ missing, doubled }: Account): readonly string[] {
  return [
    ...(missing > 0 ? [`${missing} jobs never started`] : []),
    ...(doubled > 0 ? [`${doubled} jobs started more than once`] : []),
  ];
}

function tellRates(starts: Starts, progress: (text: string) => void): () => void {
  let before = 0;
  let at = now();
  return ticking(1_000, () => {
    const moment = now();
    const rate = Math.round(((starts.started - before) / (moment - at)) * 1_000);
    before = starts.started;
    at = moment;
    progress(`${rate.toLocaleString('en')} jobs/s, ${starts.started.toLocaleString('en')} started`);
  });
}

import { setTimeout as pause } from 'node:timers/promises';
import type { Starts } from '../ledger.js';
import { now, ticking } from '../moments.js';
import { spread } from '../statistics.js';
import type { System } from '../systems/system.js';
import type { SliceResult } from './slice.js';
import { problemsOf } from './throughput.js';

/** Between two jobs the system comes to rest: a pause of 5 to 15 ms, so that nothing falls into step with a timer. */
const REST_MS = { least: 5, most: 15 } as const;

/** A job that has not started by then is lost. */
const PATIENCE_MS = 10_000;

/** Submits one job at a time to an idle system, and takes the time from the call to the start of its handler. */
export async function measureLatency(
  system: System,
  starts: Starts,
  startedAt: readonly number[],
  { seconds, warmUpSeconds }: { readonly seconds: number; readonly warmUpSeconds: number },
  progress: (text: string) => void,
): Promise<SliceResult> {
  const begin = now();
  const counting = begin + warmUpSeconds * 1_000;
  const end = counting + seconds * 1_000;
  starts.begin(begin);
  const delays: number[] = [];
  const stopTelling = ticking(1_000, () => progress(`${delays.length} samples`));
  let submitted = 0;
  while (now() < end) {
    const number = submitted++;
    const at = now();
    await Promise.all([system.submitOne(number), startOf(starts, submitted)]);
    const started = startedAt[number];
    if (started === undefined) break;
    if (at >= counting) delays.push(started - at);
    await pause(REST_MS.least + Math.random() * (REST_MS.most - REST_MS.least));
  }
  stopTelling();
  await system.finish();
  const account = await starts.account(submitted);
  const problems = [...problemsOf(account), ...(await system.check(submitted))];
  return { settings: system.settings, submitted, account, delays, spread: spread(delays), problems };
}

async function startOf(starts: Starts, count: number): Promise<void> {
  const enough = new AbortController();
  const late = pause(PATIENCE_MS, undefined, { signal: enough.signal }).catch(() => undefined);
  await Promise.race([starts.reached(count), late]);
  enough.abort();
}

import { now, ticking, until } from '../moments.js';
import { spread } from '../statistics.js';
import type { CallingSystem } from '../systems/punctual-http.js';
import type { Receiver } from '../systems/receiver.js';
import type { CallsTask, SliceResult } from './slice.js';
import { allStarted, problemsOf } from './throughput.js';

const TICK_MS = 10;

/** Submits a steady stream of fast calls, and keeps slow ones on their way beside it. */
export async function measureCalls(
  system: CallingSystem,
  receiver: Receiver,
  { seconds, warmUpSeconds, perSecond, slow }: CallsTask,
  progress: (text: string) => void,
): Promise<SliceResult> {
  const { starts } = receiver;
  const begin = now();
  const counting = begin + warmUpSeconds * 1_000;
  const ticks = ((warmUpSeconds + seconds) * 1_000) / TICK_MS;
  const bulk = (perSecond * TICK_MS) / 1_000;
  // As many begin in each tick as end in it, once all are on their way.
  const slowPerTick = slow ? (slow.receivers * TICK_MS) / slow.ms : 0;
  starts.begin(begin);
  const stopTelling = ticking(1_000, () => progress(`${starts.started.toLocaleString('en')} calls`));
  const submissions: Promise<void>[] = [];
  let [submitted, slowDue, slowNext] = [0, 0, 0];
  for (let tick = 0; tick < ticks; tick += 1) {
    await until(begin + tick * TICK_MS);
    submissions.push(system.submitMany(submitted, bulk));
    submitted += bulk;
    slowDue += slowPerTick;
    const urls: string[] = [];
    for (; slow && slowNext < Math.floor(slowDue); slowNext += 1)
      urls.push(receiver.slowUrl(slowNext % slow.receivers, slow.ms));
    if (urls.length > 0) submissions.push(system.submitOthers(urls));
  }
  await Promise.all(submissions);
  await allStarted(starts, submitted);
  stopTelling();
  await system.finish();
  const delays = await receiver.delays(counting);
  const account = await starts.account(submitted);
  const problems = [...problemsOf(account), ...(await system.check(submitted))];
  return { settings: system.settings, submitted, account, delays, spread: spread(delays), problems };
}

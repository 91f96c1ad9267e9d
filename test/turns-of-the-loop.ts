import { setImmediate as nextTurn } from 'node:timers/promises';

/** Over how many turns of the event loop some work was spread. */
export interface Turns {
  readonly count: number;
  /** The longest, in milliseconds of the processor's time: what others on the machine take does not count. */
  readonly longestMs: number;
}

/** Does the work and watches the event loop meanwhile. */
export async function turnsOf(work: () => Promise<unknown>): Promise<Turns> {
  let [count, longestMs] = [0, 0];
  let last = process.cpuUsage();
  const look = () => {
    const { user, system } = process.cpuUsage(last);
    count += 1;
    longestMs = Math.max(longestMs, (user + system) / 1_000);
    last = process.cpuUsage();
    probe = setImmediate(look);
  };
  let probe = setImmediate(look);
  // What was prepared before the work is not part of it.
  await nextTurn();
  await nextTurn();
  [count, longestMs] = [0, 0];
  await work();
  await nextTurn();
  clearImmediate(probe);
  return { count, longestMs };
}

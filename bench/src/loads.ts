import { ROUNDS } from './rounds.js';
import type { ThroughputTask } from './slices/slice.js';

/**
 * The load of every throughput measurement, the same for all systems: bulks of 1,000, two on their way at a time,
 * at most 10,000 jobs that have not started, and two seconds at the start of each slice that do not count.
 */
const WARM_UP_SECONDS = 2;
const AHEAD = 10_000;
const BULK = 1_000;
const LANES = 2;

/** The seconds per system are shared out evenly among the rounds. */
export function secondsOfSlice(seconds: number, rounds = ROUNDS): number {
  return Math.max(1, Math.round(seconds / rounds));
}

export function throughput(seconds: number, rounds = ROUNDS): ThroughputTask {
  return {
    kind: 'throughput',
    load: {
      seconds: secondsOfSlice(seconds, rounds),
      warmUpSeconds: WARM_UP_SECONDS,
      ...{ ahead: AHEAD, bulk: BULK, lanes: LANES },
    },
  };
}

/** What the load is, in words. */
export const LOAD_IN_WORDS = [
  `Jobs are submitted in bulks of ${BULK.toLocaleString('en')}, ${LANES} on their way at a time, with at most ${AHEAD.toLocaleString('en')} ahead of the handlers; the payload is {"n": number}; handlers count and return.`,
  `A job counts when its handler starts; the first ${WARM_UP_SECONDS} s of each slice do not count. Every slice has a new process and a new database. Afterwards every job must have started exactly once.`,
] as const;

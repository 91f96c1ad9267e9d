import { performance } from 'node:perf_hooks';
import { TimerClock } from '../core/clock.js';

/** Each thread counts `performance.now()` from its own start; the time below it is the same for all of them. */
const START_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/**
 * Time that only moves forward, in milliseconds since some moment: for spans and deadlines inside a worker. All
 * threads of the process read the same time, so they can tell each other when something happened.
 */
export const monotonic = new TimerClock(() => START_MS + performance.now());

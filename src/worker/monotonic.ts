import { performance } from 'node:perf_hooks';
import { TimerClock } from '../core/clock.js';

/** Time that only moves forward, in milliseconds since some moment: for spans and deadlines inside a worker. */
export const monotonic = new TimerClock(() => performance.now());

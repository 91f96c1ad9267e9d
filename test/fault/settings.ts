import type { Settings } from './history.js';

const SIZES = { nodes: 3, workers: 3, slots: 60, jobsPerSecond: 550 };
/** From here on a run is long enough for the times that users get when they set nothing. */
const LONG_RUN_SECONDS = 300;

/** The settings of a run: short runs use short times, so that the same things happen in less of it. */
export function settingsFor(seconds: number): Settings {
  return seconds >= LONG_RUN_SECONDS
    ? { ...SIZES, leaseTtlMs: 5_000, heartbeatMs: 3_000, workerTimeoutMs: 10_000 }
    : { ...SIZES, leaseTtlMs: 2_000, heartbeatMs: 500, workerTimeoutMs: 3_000 };
}

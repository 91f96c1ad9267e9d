import type { Settings } from './history.js';
import { BATCH_MIXED, EXEC_MIXED, HTTP_MIXED, MIXED, WORKFLOW_MIXED } from './plan.js';

const SIZES = { nodes: 3, workers: 3, slots: 60 };
const JOBS_ALONE = {
  jobsPerSecond: 550,
  workflowsPerSecond: 0,
  batchesPerSecond: 0,
  callsPerSecond: 0,
  programsPerSecond: 0,
};
/** What is submitted in scenarios with more than jobs. A workflow has five steps on average, a batch six members. */
const LOADS: Readonly<Record<string, typeof JOBS_ALONE>> = {
  [MIXED]: {
    jobsPerSecond: 430,
    workflowsPerSecond: 8,
    batchesPerSecond: 4,
    callsPerSecond: 15,
    programsPerSecond: 0,
  },
  [WORKFLOW_MIXED]: { ...JOBS_ALONE, jobsPerSecond: 250, workflowsPerSecond: 20 },
  [BATCH_MIXED]: { ...JOBS_ALONE, jobsPerSecond: 250, batchesPerSecond: 12 },
  [EXEC_MIXED]: { ...JOBS_ALONE, jobsPerSecond: 150, programsPerSecond: 12 },
  [HTTP_MIXED]: { ...JOBS_ALONE, jobsPerSecond: 250, callsPerSecond: 60 },
};
/** From here on a run is long enough for the times that users get when they set nothing. */
const LONG_RUN_SECONDS = 300;

/** The settings of a run: short runs use short times, so that the same things happen in less of it. */
export function settingsFor(seconds: number, scenario: string): Settings {
  const sizes = { ...SIZES, ...(LOADS[scenario] ?? JOBS_ALONE) };
  return seconds >= LONG_RUN_SECONDS
    ? { ...sizes, leaseTtlMs: 5_000, heartbeatMs: 3_000, workerTimeoutMs: 10_000 }
    : { ...sizes, leaseTtlMs: 2_000, heartbeatMs: 500, workerTimeoutMs: 3_000 };
}

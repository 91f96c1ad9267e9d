import type { Invariant } from '../checker.js';

/** The promise of at-most-once, counted where the work is done. */
export const invariant: Invariant = {
  name: 'at-most-once',
  rule: 'An at-most-once job has at most one start, whatever failed.',
  *check(seen) {
    for (const job of seen.jobs) {
      const starts = seen.startsByJob.get(job.id) ?? [];
      if (job.atMostOnce && !seen.replayed.has(job.id) && starts.length > 1) {
        yield { job: job.id, detail: `started ${starts.length} times` };
      }
    }
  },
};

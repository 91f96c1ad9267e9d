import { isEnded } from '../../../src/core/job.js';
import type { Invariant, Seen } from '../checker.js';
import type { JobRecord } from '../history.js';

/** Whatever was taken comes to its end, and what is called done was done. */
export const invariant: Invariant = {
  name: 'nothing-lost',
  rule: 'Every submission answered ok ends in a terminal state; a success has an effect of the attempt on record.',
  *check(seen) {
    for (const { outcome, ids } of seen.submissions) {
      if (outcome !== 'ok') continue;
      for (const id of ids) {
        const job = seen.jobById.get(id);
        if (!job) yield { job: id, detail: 'was taken and is nowhere' };
      }
    }
    for (const job of seen.jobs) {
      // Nobody cancels anything here, so whoever did was not entitled to.
      if (job.state === 'cancelled') yield { job: job.id, detail: 'was cancelled by nobody' };
      if (!isEnded(job.state)) yield { job: job.id, detail: `is still ${job.state}` };
      else if (job.state === 'succeeded' && !hasEffect(seen, job)) {
        yield {
          job: job.id,
          detail: `succeeded under fence ${job.attempts.at(-1)?.fence} without that effect`,
        };
      }
    }
  },
};

function hasEffect(seen: Seen, job: JobRecord): boolean {
  const fence = job.attempts.at(-1)?.fence;
  const ends = seen.endsByJob.get(job.id) ?? [];
  return ends.some((end) => end.fence === fence && end.result === 'returned');
}

import { isEnded } from '../../../src/core/job.js';
import type { Invariant, Seen } from '../checker.js';
import type { JobRecord } from '../history.js';

/** Whatever was taken comes to its end, and what is called done was done. */
export const invariant: Invariant = {
  name: 'nothing-lost',
  rule: 'Every submission answered ok ends in a terminal state; a success has an effect of the attempt on record.',
  *check(seen) {
    for (const submission of seen.submissions) {
      const { outcome, ids } = submission;
      if (outcome !== 'ok' || seen.mayBeLost.has(submission)) continue;
      for (const id of ids) {
        const job = seen.jobById.get(id);
        if (!job) yield { job: id, detail: 'was taken and is nowhere' };
      }
    }
    for (const job of seen.jobs) {
      const { servable = true, partOf = null } = seen.orderByNumber.get(job.n) ?? {};
      // Nobody cancels anything here but what nobody can run; what else ends steps and members is judged with their whole.
      if (job.state === 'cancelled' && servable && partOf === null)
        yield { job: job.id, detail: 'was cancelled by nobody' };
      if (!servable && seen.startsByJob.has(job.id))
        yield { job: job.id, detail: 'was started by a worker without the labels that it requires' };
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
  // A fence that was old before a restore may be the right one after it, and somebody may have reported under it.
  if (seen.replayed.has(job.id)) return true;
  const fence = job.attempts.at(-1)?.fence;
  const ends = seen.endsByJob.get(job.id) ?? [];
  return ends.some((end) => end.fence === fence && end.result === 'returned');
}

import type { Invariant, Seen } from '../checker.js';
import { wasClockBack } from '../excuses.js';
import type { Effect } from '../history.js';

/** Nothing is started twice for nothing. */
export const invariant: Invariant = {
  name: 'retries-have-a-reason',
  rule: 'Each further start follows a failure, a timeout, or a fault that hit its worker; a fence starts once.',
  *check(seen) {
    for (const [job, starts] of seen.startsByJob) {
      if (seen.replayed.has(job)) continue;
      for (const [index, start] of starts.entries()) {
        const before = starts[index - 1];
        if (!before) continue;
        if (before.fence === start.fence) yield { job, detail: `fence ${start.fence} started twice` };
        else if (
          !hasReason(
            seen,
            before,
            start,
            seen.orderByNumber.get(start.n)?.timeoutMs ?? Number.POSITIVE_INFINITY,
          )
        ) {
          yield {
            job,
            detail: `started again under fence ${start.fence} on ${start.worker}; nothing had happened to fence ${before.fence} on ${before.worker}`,
          };
        }
      }
    }
  },
};

function hasReason(seen: Seen, before: Effect, start: Effect, timeoutMs: number): boolean {
  const end = (seen.endsByJob.get(before.job) ?? []).find((each) => each.fence === before.fence);
  if (end?.result === 'threw') return true;
  if (start.at - before.at >= timeoutMs) return true;
  // A new leader can tell how long ago an attempt was claimed by the clock alone, and that has just leapt ahead by minutes.
  // A worker that was blocked may start the attempt long after that.
  const claims = seen.auditByJob.get(before.job) ?? [];
  const claim = claims.find(({ kind, fence }) => kind === 'claimed' && fence === before.fence);
  const claimedAt = claim?.at ?? before.at;
  if (wasClockBack(seen, { from: claimedAt, to: claimedAt })) return true;
  // The worker may have been hit before the start: its session was already doomed when the job reached it.
  const doomedMs = seen.settings.workerTimeoutMs * 2;
  return seen.faults.some(
    ({ targets, from, to }) =>
      targets.includes(before.worker) && from <= start.at && to >= before.at - doomedMs,
  );
}

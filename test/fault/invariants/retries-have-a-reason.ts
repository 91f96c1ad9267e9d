import type { Invariant, Seen } from '../checker.js';
import { wasClockBack } from '../excuses.js';
import type { Effect } from '../history.js';

/** Nothing is started twice for nothing. */
export const invariant: Invariant = {
  name: 'retries-have-a-reason',
  rule: 'Each further start follows a failure, a timeout, or a fault that hit its worker or the receiver of its call; a fence starts once.',
  *check(seen) {
    for (const [job, starts] of seen.startsByJob) {
      if (seen.replayed.has(job)) continue;
      for (const [index, start] of starts.entries()) {
        const before = starts[index - 1];
        if (!before) continue;
        if (before.fence === start.fence) yield { job, detail: `fence ${start.fence} started twice` };
        else if (!hasReason(seen, before, start)) {
          yield {
            job,
            detail: `started again under fence ${start.fence} on ${start.worker}; nothing had happened to fence ${before.fence} on ${before.worker}`,
          };
        }
      }
    }
  },
};

function hasReason(seen: Seen, before: Effect, start: Effect): boolean {
  const order = seen.orderByNumber.get(start.n);
  const { timeoutMs = Number.POSITIVE_INFINITY, call = null, program = null } = order ?? {};
  const ends = (seen.endsByJob.get(before.job) ?? []).filter((each) => each.fence === before.fence);
  if (ends.some(({ result }) => result === 'threw')) return true;
  const entries = (seen.auditByJob.get(before.job) ?? []).filter(({ fence }) => fence === before.fence);
  const claimedAt = entries.find(({ kind }) => kind === 'claimed')?.at ?? before.at;
  const isHandedOn = entries.some(({ kind }) => kind === 'handed-on');
  // The time of a call begins before the receiver sees it: it is connected first, and what was handed on counts from its claim.
  // That of a program begins before it runs: it may have to be downloaded, and waits for its host.
  const passed = start.at - (call || program ? claimedAt : before.at);
  if (passed >= timeoutMs) return true;
  // A new leader can tell how long ago an attempt was claimed by the clock alone, and that has just leapt ahead by minutes.
  // A worker that was blocked may start the attempt long after that.
  if (wasClockBack(seen, { from: claimedAt, to: claimedAt })) return true;
  // From then on, nothing that happens to its worker or its receiver matters.
  if (isHandedOn) return false;
  if (call && passed >= call.timeoutMs) return true;
  // The worker may have been hit before the start: its session was already doomed when the job reached it.
  const doomedMs = seen.settings.workerTimeoutMs * 2;
  return seen.faults.some(({ targets, held, from, to }) => {
    if (from > start.at) return false;
    if (targets.includes(before.worker)) return to >= before.at - doomedMs;
    // A call breaks with its receiver, and it seems to take too long to a worker that does not get to read the answer.
    const isCallHit = targets.some((target) => target.startsWith('sink')) || held === before.worker;
    return call !== null && isCallHit && to >= before.at;
  });
}

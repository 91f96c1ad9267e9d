import type { Invariant, Seen } from '../checker.js';

/** How far the due time and the clock of the run may differ by rounding. */
const ROUNDING_MS = 5;

/** Nothing starts early, and nothing waits when nothing is broken. */
export const invariant: Invariant = {
  name: 'lateness',
  rule: 'A job never starts before it is due, and soon after it is due and all faults around it have healed.',
  *check(seen) {
    const bound = latenessBoundMs(seen);
    const ordered = orderedDues(seen);
    for (const job of seen.jobs) {
      const first = seen.startsByJob.get(job.id)?.[0];
      if (!first) continue;
      // The row of a job that was tried again says when its last attempt was due; only its order knows the first.
      const due = job.attempts.length <= 1 ? { earliest: job.runAt, latest: job.runAt } : ordered.get(job.n);
      if (!due) continue;
      if (first.at < due.earliest - ROUNDING_MS) {
        yield { job: job.id, detail: `started ${Math.round(due.earliest - first.at)} ms before it was due` };
      }
      const lateBy = first.at - healedBy(seen, due.latest, first.at);
      if (lateBy > bound) {
        yield { job: job.id, detail: `started ${Math.round(lateBy)} ms after it could have` };
      }
    }
  },
};

interface Due {
  readonly earliest: number;
  readonly latest: number;
}

/** Between which moments each order became due, as its client can tell. */
function orderedDues(seen: Seen): Map<number, Due> {
  const dues = new Map<number, Due>();
  for (const { orders, sentAt, answeredAt } of seen.submissions) {
    for (const { n, delayMs } of orders) {
      const known = dues.get(n);
      dues.set(n, {
        earliest: Math.min(known?.earliest ?? Number.POSITIVE_INFINITY, sentAt + delayMs),
        latest: Math.max(known?.latest ?? 0, answeredAt + delayMs),
      });
    }
  }
  return dues;
}

/** A takeover, a full worker timeout for sessions that may come back, and room for a machine that is busy. */
function latenessBoundMs({ settings }: Seen): number {
  return settings.leaseTtlMs * 2 + settings.workerTimeoutMs * 2 + 5_000;
}

/** The latest moment up to the start at which something was still broken, or the due time. */
function healedBy(seen: Seen, due: number, start: number): number {
  let healed = due;
  for (const { from, to } of seen.faults) {
    if (from <= start && to >= due) healed = Math.max(healed, Math.min(to, start));
  }
  return healed;
}

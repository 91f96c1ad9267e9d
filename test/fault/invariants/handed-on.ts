import type { Invariant, Seen } from '../checker.js';
import { wasClockBack } from '../excuses.js';
import type { AuditEntry } from '../history.js';

/** How much earlier than the clock of the run the database may find that a time is up. */
const ROUNDING_MS = 50;

/** What a receiver took on is between it and the scheduler: no worker and no leader matters any more. */
export const invariant: Invariant = {
  name: 'handed-on',
  rule: 'An attempt that was handed on ends by the word of its receiver or at its deadline, and the receiver is told whether its word counts.',
  *check(seen) {
    for (const entry of seen.audit) {
      if (entry.kind !== 'handed-on' || seen.replayed.has(entry.job!)) continue;
      const detail = wrongEnd(seen, entry);
      if (detail) yield { job: entry.job!, detail };
    }
    for (const { job, fence, outcome, status, code } of seen.callReports) {
      if (status === 204 || (status === 409 && code === 'STALE_FENCE') || seen.replayed.has(job)) continue;
      yield {
        job,
        detail: `the report of ${outcome} under fence ${fence} was answered with ${status} ${code}`,
      };
    }
  },
};

function wrongEnd(seen: Seen, { job, fence }: AuditEntry): string | null {
  const record = seen.jobById.get(job!);
  const outcome = record?.attempts.find((attempt) => attempt.fence === fence)?.outcome;
  if (!record || outcome === undefined) return `fence ${fence} was handed on and never ended`;
  if (outcome === 'succeeded' || outcome === 'failed') {
    const wanted = outcome === 'succeeded' ? 'returned' : 'threw';
    const ends = seen.endsByJob.get(job!) ?? [];
    if (ends.some((end) => end.fence === fence && end.result === wanted)) return null;
    return `fence ${fence} was handed on and ${outcome}, which its receiver never said`;
  }
  if (outcome !== 'timed-out') return `fence ${fence} was handed on and is ${outcome}`;
  const entries = (seen.auditByJob.get(job!) ?? []).filter((entry) => entry.fence === fence);
  const [claim, freed] = [entries.find(isOf('claimed')), entries.find(isOf('freed'))];
  const { timeoutMs = 0 } = seen.orderByNumber.get(record.n) ?? {};
  if (!claim || !freed || freed.at - claim.at >= timeoutMs - ROUNDING_MS) return null;
  if (wasClockBack(seen, { from: claim.at, to: freed.at })) return null;
  return `fence ${fence} was handed on and timed out after ${Math.round(freed.at - claim.at)} ms`;
}

function isOf(kind: AuditEntry['kind']): (entry: AuditEntry) => boolean {
  return (entry) => entry.kind === kind;
}

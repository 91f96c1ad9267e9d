import type { Invariant, Seen } from '../checker.js';
import type { AuditEntry } from '../history.js';

/** At any moment one attempt at most owns a job, and the last one decides. */
export const invariant: Invariant = {
  name: 'one-owner',
  rule: 'Claims of a job follow one another with growing fences and end with it; one success at most, of the highest fence.',
  *check(seen) {
    for (const [job, entries] of seen.auditByJob) {
      const detail = wrongOrder(entries);
      if (detail) yield { job, detail };
    }
    yield* accepted(seen);
    for (const { id, attempts } of seen.jobs) {
      const fences = attempts.map((attempt) => attempt.fence);
      if (fences.some((fence, index) => index > 0 && fence <= fences[index - 1]!)) {
        yield { job: id, detail: `the fences on record do not grow: ${fences.join(', ')}` };
      }
      const successes = attempts.filter((attempt) => attempt.outcome === 'succeeded');
      if (successes.length > 1 || (successes.length === 1 && attempts.at(-1) !== successes[0])) {
        yield { job: id, detail: 'went on after a success' };
      }
    }
  },
};

/** What workers were told must agree with what is on record. */
function* accepted(seen: Seen): Generator<{ job: string; detail: string }> {
  for (const { job, fence, outcome, verdict } of seen.answers) {
    const record = seen.jobById.get(job);
    if (!record || verdict !== 'accepted' || seen.replayed.has(job)) continue;
    const attempt = record.attempts.find((each) => each.fence === fence);
    // Somebody's cancel or the leader's own decision may stand where the worker's word came too late.
    if (attempt?.outcome !== outcome) {
      yield {
        job,
        detail: `${outcome} under fence ${fence} was accepted, on record is ${attempt?.outcome ?? 'nothing'}`,
      };
    }
  }
}

function wrongOrder(entries: readonly AuditEntry[]): string | null {
  let owner: number | null = null;
  let highest = 0;
  let ended = false;
  for (const { kind, fence, seq } of entries) {
    if (kind === 'claimed') {
      if (ended) return `was claimed after its end (write ${seq})`;
      if (owner !== null) return `fence ${fence} claimed it while fence ${owner} owned it (write ${seq})`;
      if (fence! <= highest) return `fence ${fence} claimed it after fence ${highest} (write ${seq})`;
      owner = fence;
      highest = fence!;
    } else if (kind === 'freed') {
      if (owner !== fence)
        return `fence ${fence} was freed while ${owner ?? 'nobody'} owned it (write ${seq})`;
      owner = null;
    } else if (kind === 'ended') {
      if (ended) return `ended twice (write ${seq})`;
      if (owner !== null && owner !== fence) return `fence ${fence} ended it while fence ${owner} owned it`;
      ended = true;
    }
  }
  return null;
}

import type { Invariant } from '../checker.js';

/** Results under an old fence change nothing, and whoever sends one is told. */
export const invariant: Invariant = {
  name: 'stale-refused',
  rule: 'A result under an old fence is answered with 409 STALE_FENCE and leaves no trace.',
  *check(seen) {
    for (const { job, fence, status, code } of seen.probes) {
      if (seen.replayed.has(job)) continue;
      if (status !== 409 || code !== 'STALE_FENCE') {
        yield { job, detail: `a result under the old fence ${fence} was answered with ${status} ${code}` };
      }
    }
    for (const { id, result } of seen.jobs) {
      if (result?.includes('staleProbe') && !seen.replayed.has(id))
        yield { job: id, detail: 'a stale result is on record' };
    }
    for (const { job, fence, outcome, verdict } of seen.answers) {
      const last = seen.jobById.get(job)?.attempts.at(-1);
      if (
        verdict === 'stale' &&
        !seen.replayed.has(job) &&
        last?.fence === fence &&
        last.outcome === outcome &&
        outcome === 'succeeded'
      ) {
        yield {
          job,
          detail: `the success under fence ${fence} counts although its worker was told it was stale`,
        };
      }
    }
  },
};

import type { Invariant } from '../checker.js';
import { brokenBy, graceMs, hitsScheduler } from '../excuses.js';

/** Load is no reason to change the leader. */
export const invariant: Invariant = {
  name: 'term-kept',
  rule: 'While nothing but load is put on the cluster the term is kept.',
  *check(seen) {
    const grace = graceMs(seen.settings);
    const broken = seen.faults.filter(hitsScheduler).flatMap((fault) => brokenBy(fault) ?? []);
    for (const { kind, epoch, writer, at } of seen.audit) {
      if (kind !== 'term' || broken.some(({ from, to }) => from <= at && at <= to + grace)) continue;
      const load = seen.faults.find((fault) => {
        const span = brokenBy(fault);
        return fault.from <= at && at <= fault.to && (span === null || at < span.from);
      });
      if (load) yield { detail: `${load.kind} made ${writer} take the term ${epoch}` };
    }
  },
};

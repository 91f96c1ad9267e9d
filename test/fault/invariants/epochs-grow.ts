import type { Invariant } from '../checker.js';

/** One leader decides at a time, and an old one writes nothing. */
export const invariant: Invariant = {
  name: 'epochs-grow',
  rule: 'Epochs only grow, and after a newer term began nobody writes under an older one.',
  *check(seen) {
    let epoch = 0;
    for (const sighting of seen.leases) {
      if (sighting.epoch < epoch) yield { detail: `the lease went from epoch ${epoch} to ${sighting.epoch}` };
      epoch = Math.max(epoch, sighting.epoch);
    }
    let term = { epoch: 0, holder: '' };
    for (const entry of seen.audit) {
      const job = entry.job === null ? {} : { job: entry.job };
      if (entry.kind === 'term') {
        if (entry.epoch <= term.epoch) yield { detail: `term ${entry.epoch} followed term ${term.epoch}` };
        term = { epoch: entry.epoch, holder: entry.writer };
      } else if (entry.writer !== term.holder) {
        yield {
          ...job,
          detail: `${entry.writer} wrote (${entry.seq}, ${entry.kind}) in the term ${term.epoch} of ${term.holder}`,
        };
      } else if (entry.kind === 'claimed' && entry.epoch !== term.epoch) {
        yield { ...job, detail: `was claimed under epoch ${entry.epoch} in term ${term.epoch}` };
      }
    }
  },
};

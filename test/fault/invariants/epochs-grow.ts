import type { Invariant, Seen } from '../checker.js';
import { restoresOf } from '../excuses.js';

/** One leader decides at a time, and an old one writes nothing. */
export const invariant: Invariant = {
  name: 'epochs-grow',
  rule: 'Epochs only grow, after a newer term began nobody writes under an older one, and no holder has one epoch twice.',
  *check(seen) {
    yield* heldTwice(seen);
    const restores = restoresOf(seen);
    let [epoch, last] = [0, 0];
    for (const sighting of seen.leases) {
      const isOlderCopy = restores.some(({ downAt }) => last <= downAt && downAt < sighting.at);
      if (isOlderCopy) epoch = 0;
      last = sighting.at;
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

/** Terms that were lost with a newer database must not come again: a fence could not tell them from their namesakes. */
function* heldTwice(seen: Seen): Generator<{ detail: string }> {
  for (const { lost, downAt } of restoresOf(seen)) {
    const terms = lost
      .filter(({ kind }) => kind === 'term')
      .map(({ epoch, writer }) => `${epoch} of ${writer}`);
    for (const { kind, epoch, writer, at } of seen.audit) {
      if (kind === 'term' && at > downAt && terms.includes(`${epoch} of ${writer}`))
        yield {
          detail: `the term ${epoch} of ${writer} was lost with the newer database and was taken again`,
        };
    }
  }
}

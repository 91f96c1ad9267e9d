import type { Invariant } from '../checker.js';
import { isUndisturbed } from '../excuses.js';
import { firstStartAfter } from '../takeover.js';

/** How long a cluster may stand still when its leader is killed, whatever state its tables are in. */
export const invariant: Invariant = {
  name: 'takeover-in-time',
  rule: 'Where a fault says within which time a new leader must start something, one does.',
  *check(seen) {
    const find = firstStartAfter(seen);
    for (const fault of seen.faults) {
      const gone = fault.leaderGone;
      if (gone?.withinMs === undefined || !fault.effective) continue;
      const time = { from: gone.at, to: gone.at + gone.withinMs };
      if (!isUndisturbed(seen, time, fault)) continue;
      const first = find(gone);
      if (first && first.at <= time.to) continue;
      const took = first ? `${Math.round(first.at - gone.at)} ms` : 'for ever';
      yield { detail: `${fault.kind}: the first start took ${took}, which is more than ${gone.withinMs} ms` };
    }
  },
};

import type { Invariant } from '../checker.js';

const SHARE = 0.9;

/** When nothing is broken any more, everything is as before. */
export const invariant: Invariant = {
  name: 'it-recovers',
  rule: 'A while after healing there is one leader, no claim is left over, and throughput is back to 90 %.',
  *check({ aftermath }) {
    const { leaders, claims, liveNodes, rateBefore, rateAfter } = aftermath;
    if (leaders.length !== 1) yield { detail: `${leaders.length} leaders: ${leaders.join(', ') || 'none'}` };
    for (const leader of leaders) {
      if (!liveNodes.includes(leader)) yield { detail: `the lease names ${leader}, which is not alive` };
    }
    if (claims > 0) yield { detail: `${claims} jobs are claimed although nothing is left to do` };
    if (rateAfter < rateBefore * SHARE) {
      yield {
        detail: `${Math.round(rateAfter)} starts a second, before the faults ${Math.round(rateBefore)}`,
      };
    }
  },
};

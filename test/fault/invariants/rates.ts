import type { Invariant, Seen } from '../checker.js';
import { isUndisturbed } from '../excuses.js';
import type { ClockBack, FaultRecord } from '../history.js';

/** Over which time a rate is measured. */
const WINDOW_MS = 2_500;
const STEP_MS = 250;
/** A start is drawn when it is decided and seen when it is written; under load that is not at once. */
const WRITING_MS = 2_000;
/** The share of its rate that a queue with work must reach in each window. */
const SHARE = 0.5;

/** A rate is a rate by the time that passes, not by what the clock says. */
export const invariant: Invariant = {
  name: 'rates',
  rule: 'A queue with a rate and work starts jobs at that rate, neither fewer nor more, also while the clock is set back.',
  *check(seen) {
    for (const fault of seen.faults) {
      if (!fault.clockBack || !fault.effective) continue;
      const claims = claimsOf(seen, fault.clockBack.queue);
      yield* tooFew(seen, fault, fault.clockBack, claims);
      yield* tooMany(fault.clockBack, claims);
    }
  },
};

/** The moments in which jobs of a queue were claimed, in order. */
function claimsOf(seen: Seen, queue: string): number[] {
  const claims = seen.audit.filter(({ kind, job }) => {
    const order = kind === 'claimed' ? seen.orderByNumber.get(seen.jobById.get(job!)?.n ?? 0) : undefined;
    return order?.queue === queue;
  });
  return claims.map(({ at }) => at).sort((a, b) => a - b);
}

function* tooFew(
  seen: Seen,
  fault: FaultRecord,
  { queue, perSecond, from, to }: ClockBack,
  claims: readonly number[],
): Generator<{ detail: string }> {
  const wanted = (WINDOW_MS / 1_000) * perSecond * SHARE;
  for (let begin = from; begin + WINDOW_MS <= to; begin += STEP_MS) {
    const time = { from: begin, to: begin + WINDOW_MS };
    const count = claims.filter((at) => at >= time.from && at < time.to).length;
    if (count >= wanted || !isUndisturbed(seen, time, fault)) continue;
    const detail = `${queue} started ${count} jobs in ${WINDOW_MS} ms while the clock was set back; its rate is ${perSecond} a second`;
    yield { detail };
    return;
  }
}

function* tooMany(
  { queue, perSecond, burst, from, to }: ClockBack,
  claims: readonly number[],
): Generator<{ detail: string }> {
  const during = claims.filter((at) => at >= from && at <= to);
  const allowed = burst + ((to - from + WRITING_MS) / 1_000) * perSecond;
  if (during.length > allowed)
    yield {
      detail: `${queue} started ${during.length} jobs in ${Math.round(to - from)} ms; its rate is ${perSecond} a second`,
    };
}

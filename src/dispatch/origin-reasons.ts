import { humanDuration } from '../core/duration.js';
import { rateView } from '../core/rate.js';
import type { Why } from '../core/wire.js';
import type { Origin } from './origin.js';

/** Why no call to an origin starts, for people. */
export interface OriginReason {
  /** One sentence. */
  readonly detail: string;
  readonly figures: Why['figures'];
}

/** What holds calls to the origin up; null if nothing does. `now` is on the steady clock, `timeOf` tells moments of it. */
export function explainOrigin(
  origin: Origin,
  now: number,
  timeOf: (moment: number) => number,
): OriginReason | null {
  const hold = origin.holdAt(now);
  if (!hold) return null;
  const { name, circuit, running, concurrency, bucket } = origin;
  const basic = { origin: name, running };
  if (hold.kind === 'limit') {
    const detail = `As many calls to ${name} are running as its limit allows.`;
    return { detail, figures: { ...basic, limit: concurrency } };
  }
  if (hold.kind === 'slots') {
    const detail = `The calls to ${name} that are running take up half of the workers' slots; the others are for other origins.`;
    return { detail, figures: { ...basic, limit: origin.mostOfSlots } };
  }
  const failures = { consecutiveFailures: circuit.failures };
  const broken = `The circuit of ${name} is open after ${circuit.failures} failures in a row`;
  if (hold.kind === 'probe') {
    const detail = `${broken}; one call is out as a probe, and the others wait for its outcome.`;
    return { detail, figures: { ...basic, ...failures } };
  }
  const opensInMs = Math.ceil(hold.until - now);
  const until = new Date(timeOf(hold.until)).toISOString();
  const times = { opensInMs, until };
  const soon = humanDuration(opensInMs);
  if (hold.kind === 'pause') {
    const detail = `${name} has asked for a pause (Retry-After) until ${until}; the next call may start in ${soon}.`;
    return { detail, figures: { ...basic, ...times } };
  }
  if (hold.kind === 'circuit') {
    const detail = `${broken}; the next probe goes out in ${soon}.`;
    return { detail, figures: { ...basic, ...failures, ...times } };
  }
  const { limit, per, burst } = rateView(bucket!.rate);
  const calls = limit === 1 ? '1 call' : `${limit} calls`;
  const detail = `At most ${calls} to ${name} start in ${per}; the next may start in ${soon}.`;
  return { detail, figures: { ...basic, limit, per, burst, ...times } };
}

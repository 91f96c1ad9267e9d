import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServerClock } from './worker-clock.js';

/** A clock under a monotonic time that the test moves, and a local clock that is wrong by an hour. */
function clockAt(start: number) {
  const time = { now: start };
  const clock = new ServerClock(
    () => time.now,
    () => start + 3_600_000,
  );
  return { time, clock };
}

const iso = (ms: number) => new Date(ms).toISOString();

describe('the server’s clock', () => {
  it('is right within half of the fastest round trip, wherever in it the server looked at its clock', () => {
    const trip = fc.record({ there: fc.nat(5_000), back: fc.nat(5_000) });
    fc.assert(
      fc.property(fc.array(trip, { minLength: 1, maxLength: 20 }), (trips) => {
        const { time, clock } = clockAt(1_000);
        const serverAhead = 1_000_000_000_000;
        for (const { there, back } of trips) {
          const askedAt = clock.mark();
          time.now += there;
          const serverTime = iso(serverAhead + time.now);
          time.now += back;
          clock.compare(serverTime, askedAt);
        }
        const best = Math.min(...trips.map(({ there, back }) => (there + back) / 2));
        const drift = (time.now - 1_000) * 1e-4;
        expect(Math.abs(clock.now() - (serverAhead + time.now))).toBeLessThanOrEqual(best + drift + 1e-3);
      }),
    );
  });

  it('prefers a slow comparison to a fast one that is very old', () => {
    const { time, clock } = clockAt(0);
    clock.compare(iso(1_000_000), clock.mark());
    time.now = 24 * 3_600_000;
    const askedAt = clock.mark();
    time.now += 200;
    clock.compare(iso(5_000_000), askedAt);
    expect(clock.now()).toBe(5_000_100);
  });

  it('goes by the local clock before the first answer, and ignores what is no time', () => {
    const { clock } = clockAt(5_000);
    clock.compare('soon', clock.mark());
    expect(clock.now()).toBe(5_000 + 3_600_000);
  });
});

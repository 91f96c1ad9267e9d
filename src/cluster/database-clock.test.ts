import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DatabaseClock } from './database-clock.js';

/** This machine's monotonic time, and the database's clock as a function of it. */
let machine = 0;
const OFFSET = Date.UTC(2026, 0, 1);

beforeEach(() => {
  machine = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => machine);
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Asks the database, whose answer takes its time on the way back. */
function ask(trueTime: () => number, wayBackMs: number): number {
  const answer = Math.floor(trueTime());
  machine += wayBackMs;
  return answer;
}

describe("the database's clock", () => {
  it('goes on between samples with the time of this machine', () => {
    const clock = new DatabaseClock(OFFSET);
    machine += 1_234.5;
    expect(clock.now()).toBe(OFFSET + 1_234);
  });

  it('is never ahead of the truth, and behind by no more than the best way back', () => {
    const trueTime = () => OFFSET + machine;
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(2_000), fc.double({ min: 0, max: 400, noNaN: true })), { maxLength: 40 }),
        fc.double({ min: 0, max: 400, noNaN: true }),
        (samples, firstWayBack) => {
          machine = 1_000;
          const clock = new DatabaseClock(ask(trueTime, firstWayBack));
          const ways = [firstWayBack];
          for (const [pause, wayBack] of samples) {
            machine += pause;
            clock.sample(ask(trueTime, wayBack), wayBack);
            ways.push(wayBack);
            // A thousandth of a millisecond is what numbers of this size lose in arithmetic.
            expect(clock.now()).toBeLessThanOrEqual(trueTime() + 0.001);
            const best = Math.min(...ways.slice(-8));
            expect(trueTime() - clock.now()).toBeLessThanOrEqual(best + 2.001);
          }
        },
      ),
    );
  });

  it('follows a database whose clock runs faster or slower than this machine', () => {
    for (const rate of [1.0005, 0.9995]) {
      machine = 0;
      const trueTime = () => OFFSET + machine * rate;
      const clock = new DatabaseClock(ask(trueTime, 1));
      for (let i = 0; i < 1_000; i++) {
        machine += 500;
        clock.sample(ask(trueTime, 1), 1);
      }
      // Half a per mille over the eight samples that count, four seconds, is two milliseconds.
      expect(Math.abs(trueTime() - clock.now())).toBeLessThanOrEqual(5);
    }
  });

  it('follows a clock that was set back at once, so that nothing starts early', () => {
    let step = 0;
    const trueTime = () => OFFSET + machine + step;
    const clock = new DatabaseClock(ask(trueTime, 1));
    step = -60_000;
    clock.sample(ask(trueTime, 1), 1);
    expect(clock.now()).toBeLessThanOrEqual(trueTime() + 0.001);
  });

  it('follows a clock that was set, in either direction, within a few samples', () => {
    let step = 0;
    const trueTime = () => OFFSET + machine + step;
    const clock = new DatabaseClock(ask(trueTime, 1));
    for (const to of [60_000, -60_000]) {
      step = to;
      for (let i = 0; i < 8; i++) clock.sample(ask(trueTime, 1), 1);
      expect(Math.abs(trueTime() - clock.now())).toBeLessThanOrEqual(2);
    }
  });
});

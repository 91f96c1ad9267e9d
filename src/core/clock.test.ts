import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EarliestTimer, MAX_TIMER_MS, TimerClock } from './clock.js';

describe('a timer of the clock', () => {
  let now = 0;
  const clock = new TimerClock(() => now);
  let timers: { run: () => void; ms: number; cleared: boolean; hasRef: boolean }[] = [];

  beforeEach(() => {
    now = 1_000;
    timers = [];
    vi.stubGlobal('setTimeout', (run: () => void, ms: number) => {
      const timer = { run, ms, cleared: false, hasRef: true };
      timers.push(timer);
      return { timer, unref: () => (timer.hasRef = false) };
    });
    vi.stubGlobal('clearTimeout', (handle?: { timer: { cleared: boolean } }) => {
      if (handle) handle.timer.cleared = true;
    });
  });

  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it('runs once when its moment has come', () => {
    const run = vi.fn();
    clock.at(1_250, run);
    expect(timers[0]).toMatchObject({ ms: 250, hasRef: false });
    now = 1_250;
    timers[0]!.run();
    expect(run).toHaveBeenCalledTimes(1);
    expect(timers).toHaveLength(1);
  });

  it('waits on when it is called a little early', () => {
    const run = vi.fn();
    clock.at(1_250, run);
    now = 1_249.4;
    timers[0]!.run();
    expect(run).not.toHaveBeenCalled();
    expect(timers[1]).toMatchObject({ ms: 1, hasRef: false });
    now = 1_250;
    timers[1]!.run();
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('waits on when the clock was set back meanwhile', () => {
    const run = vi.fn();
    clock.at(1_250, run);
    now = 500;
    timers[0]!.run();
    expect(run).not.toHaveBeenCalled();
    expect(timers[1]!.ms).toBe(750);
  });

  it('that waits for a time to pass does not care about the clock', () => {
    const run = vi.fn();
    const steady = vi.spyOn(performance, 'now').mockReturnValue(70);
    clock.after(250, run);
    expect(timers[0]).toMatchObject({ ms: 250, hasRef: false });
    now = 500;
    steady.mockReturnValue(320);
    timers[0]!.run();
    expect(run).toHaveBeenCalledTimes(1);
    steady.mockRestore();
  });

  it('waits in pieces for what is further away than one timer can wait', () => {
    const run = vi.fn();
    const moment = now + 2 * MAX_TIMER_MS + 5;
    clock.at(moment, run);
    for (const expected of [MAX_TIMER_MS, MAX_TIMER_MS, 5]) {
      const timer = timers.at(-1)!;
      expect(timer.ms).toBe(expected);
      expect(run).not.toHaveBeenCalled();
      now += expected;
      timer.run();
    }
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('does not run in the turn that sets it, even when its moment has passed', () => {
    const run = vi.fn();
    clock.at(-5, run);
    expect(run).not.toHaveBeenCalled();
    expect(timers[0]!.ms).toBe(0);
    timers[0]!.run();
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('can be cancelled, also between two pieces', () => {
    const timer = clock.at(now + MAX_TIMER_MS + 5, () => expect.unreachable());
    now += MAX_TIMER_MS;
    timers[0]!.run();
    timer.cancel();
    expect(timers[1]!.cleared).toBe(true);
  });
});

describe('the clock over real timers', () => {
  it('is never early', async () => {
    const clock = new TimerClock(() => performance.timeOrigin + performance.now());
    const moments = [0.3, 1.7, 2.2, 5.9, 8.1, 13.4].map((ms) => clock.now() + ms);
    const early = await Promise.all(
      moments.map(
        (moment) => new Promise<number>((done) => clock.at(moment, () => done(moment - clock.now()))),
      ),
    );
    for (const ms of early) expect(ms).toBeLessThanOrEqual(0);
  });
});

describe('a timer for the earliest of many moments', () => {
  function armed() {
    const timers: { moment: number; run: () => void; cancelled: boolean }[] = [];
    let fired = 0;
    const at = (moment: number, run: () => void) => {
      const timer = { moment, run, cancelled: false };
      timers.push(timer);
      return { cancel: () => (timer.cancelled = true) };
    };
    const earliest = new EarliestTimer({ at }, () => (fired += 1));
    const waiting = () => timers.filter(({ cancelled }) => !cancelled).map(({ moment }) => moment);
    return { earliest, timers, waiting, fired: () => fired };
  }

  it('waits for the earliest moment, and for nothing when there is none', () => {
    const { earliest, waiting } = armed();
    for (const moment of [null, 30, 20, 25, 20, null]) earliest.arm(moment);
    expect(waiting()).toEqual([20]);
  });

  it('can be armed for any moment again after it has fired', () => {
    const { earliest, timers, waiting, fired } = armed();
    earliest.arm(20);
    timers[0]!.cancelled = true;
    timers[0]!.run();
    expect(fired()).toBe(1);
    earliest.arm(40);
    expect(waiting()).toEqual([40]);
  });

  it('waits for nothing after it was stopped', () => {
    const { earliest, waiting } = armed();
    earliest.arm(20);
    earliest.stop();
    earliest.arm(10);
    expect(waiting()).toEqual([]);
  });
});

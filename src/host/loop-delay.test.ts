import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { BOUNDS, bucketOf } from '../core/histogram.js';
import { LoopDelay } from './loop-delay.js';

const slowest = (delay: LoopDelay) => delay.counts.findLastIndex((count) => count > 0);
const samples = (delay: LoopDelay) => delay.counts.reduce((sum, count) => sum + count, 0);

describe('the delay of the event loop', () => {
  it('is by how much a sample comes later than it was to come', () => {
    let [now, share] = [1_000, 0.5];
    const delay = new LoopDelay({ now: () => now, busyShare: () => share });
    delay.runOnce();
    expect(samples(delay)).toBe(0);
    for (const ms of [20, 20.4, 19, 170]) {
      now += ms;
      delay.runOnce();
    }
    expect(delay.counts[0]).toBe(3);
    expect(delay.counts[bucketOf(150)]).toBe(1);
    expect(delay.sumMs).toBeCloseTo(150.4);
    share = 0;
    now += 20 + delay.runOnce();
    delay.runOnce();
    expect(delay.counts[bucketOf(20)]).toBe(1);
  });

  it('is looked at rarely while the process has nothing to do', () => {
    let share = 0.001;
    const delay = new LoopDelay({ now: () => 0, busyShare: () => share });
    expect(delay.runOnce()).toBeGreaterThanOrEqual(100);
    share = 0.2;
    expect(delay.runOnce()).toBeLessThanOrEqual(20);
  });

  it('shows a thread that was held', async () => {
    const delay = new LoopDelay().start();
    await sleep(150);
    const until = performance.now() + 350;
    while (performance.now() < until);
    await sleep(60);
    await delay.stop();
    expect(BOUNDS[slowest(delay)]!).toBeGreaterThan(200);
    const seen = samples(delay);
    await sleep(60);
    expect(samples(delay)).toBe(seen);
  });
});

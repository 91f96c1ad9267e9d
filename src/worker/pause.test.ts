import { describe, expect, it } from 'vitest';
import { GrowingPause } from './pause.js';

describe('pauses after failures', () => {
  it('begin once everybody was asked, grow with every failure, and begin anew after a success', () => {
    const growing = new GrowingPause(100, 1_000, 2);
    expect([growing.nextMs(), growing.nextMs()]).toEqual([0, 0]);
    const pauses = Array.from({ length: 6 }, () => growing.nextMs());
    // Each is drawn from half around its length.
    [100, 200, 400, 800, 1_000, 1_000].forEach((length, i) => {
      expect(pauses[i]).toBeGreaterThanOrEqual(length / 2);
      expect(pauses[i]).toBeLessThanOrEqual(length * 1.5);
    });
    growing.reset();
    expect(growing.nextMs()).toBe(0);
  });

  it('follow the first failure when there is nobody else to ask', () => {
    expect(new GrowingPause(100, 1_000).nextMs()).toBeGreaterThan(0);
  });
});

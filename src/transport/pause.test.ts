import { describe, expect, it } from 'vitest';
import { PunctualError } from '../core/errors.js';
import { GrowingPause } from './pause.js';

const AWAY = new PunctualError('NO_LEADER', 'nobody leads');

describe('pauses after failures', () => {
  it('begin once every node was asked, grow with every failure, and begin anew after a success', () => {
    const growing = new GrowingPause(100, 1_000, 2);
    expect([growing.nextMs(AWAY), growing.nextMs(AWAY)]).toEqual([0, 0]);
    const pauses = Array.from({ length: 6 }, () => growing.nextMs(AWAY));
    // Each is drawn from half around its length.
    [100, 200, 400, 800, 1_000, 1_000].forEach((length, i) => {
      expect(pauses[i]).toBeGreaterThanOrEqual(length / 2);
      expect(pauses[i]).toBeLessThanOrEqual(length * 1.5);
    });
    growing.reset();
    expect(growing.nextMs(AWAY)).toBe(0);
  });

  it('follow the first failure when no other node would do better', () => {
    const growing = new GrowingPause(100, 1_000, 2);
    expect(growing.nextMs(new PunctualError('INTERNAL', 'tripped over it'))).toBeGreaterThan(0);
    expect(growing.nextMs()).toBeGreaterThan(0);
    expect(new GrowingPause(100, 1_000).nextMs(AWAY)).toBeGreaterThan(0);
  });
});

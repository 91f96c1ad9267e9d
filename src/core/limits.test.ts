import { describe, expect, it } from 'vitest';
import { laneOf } from './limits.js';

describe('the lane of a concurrency key', () => {
  it('is zero without a key, never zero with one, and always the same', () => {
    expect(laneOf(null)).toBe(0);
    const keys = Array.from({ length: 20_000 }, (_, i) => `customer-${i}`);
    const lanes = keys.map(laneOf);
    expect(lanes.every((lane) => lane >= 1 && lane <= 4_095)).toBe(true);
    expect(keys.map(laneOf)).toEqual(lanes);
  });

  it('is spread evenly, so that no lane holds many keys', () => {
    const counts = new Map<number, number>();
    for (let i = 0; i < 40_950; i++) {
      const lane = laneOf(`order-${i}`);
      counts.set(lane, (counts.get(lane) ?? 0) + 1);
    }
    expect(Math.max(...counts.values())).toBeLessThan(40);
  });
});

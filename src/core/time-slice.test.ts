import { describe, expect, it } from 'vitest';
import { inPortions } from './time-slice.js';

describe('work in portions', () => {
  it('covers everything once, in order', async () => {
    const items = Array.from({ length: 3_500 }, (_, i) => i);
    const seen: number[] = [];
    const starts: number[] = [];
    await inPortions(items, (portion, from) => {
      starts.push(from);
      seen.push(...portion);
    });
    expect(seen).toEqual(items);
    expect(starts).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it('lets others have their turn in between', async () => {
    let turns = 0;
    const beat = () => {
      turns += 1;
      if (turns < 100) setImmediate(beat);
    };
    setImmediate(beat);
    await inPortions(new Array(4_000).fill(0), () => undefined);
    expect(turns).toBeGreaterThanOrEqual(3);
  });

  it('does few items at once, before it returns', () => {
    let done = 0;
    void inPortions([1, 2, 3], (portion) => {
      done += portion.length;
    });
    expect(done).toBe(3);
  });
});

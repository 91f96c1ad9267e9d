import fc from 'fast-check';
import pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import { bisect } from './bisect.js';

/** What Postgres says about a value that it cannot hold. */
function dataError(): pg.DatabaseError {
  const error = new pg.DatabaseError('unsupported Unicode escape sequence', 0, 'error');
  error.code = '22P05';
  return error;
}

describe('a batch', () => {
  it('runs whole when nothing is wrong with it, and not at all when it is empty', async () => {
    const run = vi.fn(async (items: readonly number[]) => items.map((item) => item * 2));
    expect(await bisect([1, 2, 3], run, () => expect.unreachable())).toEqual([2, 4, 6]);
    expect(run).toHaveBeenCalledTimes(1);
    expect(await bisect([], run, () => expect.unreachable())).toEqual([]);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('loses exactly its bad items, keeps the order and repeats little', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 60 }), async (goodness) => {
        const items = goodness.map((good, id) => ({ id, good }));
        const bad: number[] = [];
        let runs = 0;
        const done = await bisect(
          items,
          async (part) => {
            runs += 1;
            if (part.some((item) => !item.good)) throw dataError();
            return part.map((item) => item.id);
          },
          (item) => bad.push(item.id),
        );
        expect(done).toEqual(items.filter((item) => item.good).map((item) => item.id));
        expect(bad).toEqual(items.filter((item) => !item.good).map((item) => item.id));
        expect(runs).toBeLessThanOrEqual(
          1 + 2 * Math.max(1, bad.length) * Math.ceil(Math.log2(items.length + 2)),
        );
      }),
    );
  });

  it('fails whole for any other reason, because then nothing is known about its items', async () => {
    const onBad = vi.fn();
    const lost = new Error('Connection terminated unexpectedly');
    const failing = bisect([1, 2, 3], () => Promise.reject(lost), onBad);
    await expect(failing).rejects.toBe(lost);
    expect(onBad).not.toHaveBeenCalled();
  });
});

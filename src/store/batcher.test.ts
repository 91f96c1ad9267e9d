import fc from 'fast-check';
import pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import { Batcher } from './batcher.js';

function failure(code: string): pg.DatabaseError {
  const error = new pg.DatabaseError('planted', 0, 'error');
  error.code = code;
  return error;
}
const TOO_SLOW = () => failure('57014');
const BAD_DATA = () => failure('22P05');

interface Item {
  readonly id: number;
  readonly bytes: number;
}
const batcherOf = (items: number, bytes: number) => new Batcher<Item>({ items, bytes }, (item) => item.bytes);
const itemsOf = (count: number, bytes = 1): Item[] =>
  Array.from({ length: count }, (_, id) => ({ id, bytes }));
const lengths = (work: { mock: { calls: unknown[][] } }) =>
  work.mock.calls.map(([batch]) => (batch as Item[]).length);

describe('batches', () => {
  it('are bounded in number and in bytes, and never empty', async () => {
    const work = vi.fn(async (_: readonly Item[]) => undefined);
    const none = () => expect.unreachable();
    await batcherOf(3, 1_000).run(itemsOf(7), work, none);
    await batcherOf(100, 10).run(itemsOf(5, 4), work, none);
    await batcherOf(100, 10).run(itemsOf(2, 11), work, none);
    await batcherOf(100, 10).run([], work, none);
    expect(lengths(work)).toEqual([3, 3, 1, 2, 2, 1, 1, 1]);
  });

  it('deal with every item, set exactly the bad ones aside, and come to an end whatever fits', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ bytes: fc.integer({ min: 1, max: 50 }), good: fc.boolean() }), {
          maxLength: 80,
        }),
        fc.integer({ min: 1, max: 60 }),
        async (drawn, capacity) => {
          const items = drawn.map((item, id) => ({ ...item, id }));
          const done = new Set<number>();
          const aside = new Map<number, string>();
          const batcher = new Batcher<(typeof items)[number]>(
            { items: 30, bytes: 400 },
            (item) => item.bytes,
          );
          const count = await batcher.run(
            items,
            async (batch) => {
              if (batch.length > 1 && batch.reduce((sum, { bytes }) => sum + bytes, 0) > capacity)
                throw TOO_SLOW();
              if (batch.some(({ good }) => !good)) throw BAD_DATA();
              for (const { id } of batch) done.add(id);
            },
            ({ id }, error) => aside.set(id, (error as pg.DatabaseError).code!),
          );
          expect(count).toBe(items.length);
          expect([...done].sort((a, b) => a - b)).toEqual(
            items.filter(({ good }) => good).map(({ id }) => id),
          );
          expect([...aside]).toEqual(items.filter(({ good }) => !good).map(({ id }) => [id, '22P05']));
        },
      ),
    );
  });

  it('are smaller after one met its deadline, also in the next run, and grow again while they go through', async () => {
    const batcher = batcherOf(64, 1_000_000);
    let fits = 10;
    const work = vi.fn(async (batch: readonly Item[]) => {
      if (batch.length > fits) throw TOO_SLOW();
    });
    await batcher.run(itemsOf(20), work, () => expect.unreachable());
    expect(lengths(work)).toEqual([20, 5, 10, 5]);
    fits = 1_000;
    work.mockClear();
    await batcher.run(itemsOf(200), work, () => expect.unreachable());
    expect(lengths(work)).toEqual([20, 40, 64, 64, 12]);
  });

  it('leave behind what takes too long alone, and fail when everything does', async () => {
    const aside: number[] = [];
    const work = async (batch: readonly Item[]) => {
      if (batch.some(({ id }) => id === 3 || id >= 30)) throw TOO_SLOW();
    };
    const setAside = ({ id }: Item) => aside.push(id);
    await batcherOf(16, 1_000).run(itemsOf(20), work, setAside);
    expect(aside).toEqual([3]);
    await expect(batcherOf(16, 1_000).run(itemsOf(60).slice(30), work, setAside)).rejects.toThrow('planted');
    expect(aside).toEqual([3, 30, 31, 32]);
  });

  it('stop when they are told to, and say how far they came', async () => {
    const work = vi.fn(async (_: readonly Item[]) => undefined);
    const goOn = () => work.mock.calls.length < 2;
    expect(await batcherOf(3, 1_000).run(itemsOf(10), work, () => expect.unreachable(), goOn)).toBe(6);
  });

  it('fail whole for any other reason, because then nothing is known about their items', async () => {
    const lost = new Error('Connection terminated unexpectedly');
    const running = batcherOf(3, 10).run(
      itemsOf(2),
      () => Promise.reject(lost),
      () => expect.unreachable(),
    );
    await expect(running).rejects.toBe(lost);
  });
});

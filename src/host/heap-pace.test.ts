import { setTimeout as pause } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { expect, it, onTestFinished } from 'vitest';
import { HeapPace, LARGE_BYTES, LARGE_PERCENT } from './heap-pace.js';

const MIB = 1024 * 1024;

it('has a large heap collected earlier, and leaves a small one to the engine', async () => {
  const told: number[] = [];
  let used = 0;
  const pace = new HeapPace({ usedBytes: () => used, collectAfter: (percent) => told.push(percent) });
  for (const bytes of [LARGE_BYTES - 1, LARGE_BYTES, 2 * LARGE_BYTES, LARGE_BYTES - 1, LARGE_BYTES]) {
    used = bytes;
    pace.runOnce();
  }
  expect(told).toEqual([LARGE_PERCENT, 0, LARGE_PERCENT]);
  await pace.stop();
  expect(told.at(-1)).toBe(0);
});

/** A mebibyte that lies in the heap. */
const mebibyte = (n: number) => Array<number>(MIB / 8).fill(n);
const usedMib = () => getHeapStatistics().used_heap_size / MIB;

it('keeps the garbage of a large heap below what is alive in it', async () => {
  const pace = new HeapPace().start();
  onTestFinished(() => pace.stop());
  const alive = Array.from({ length: 300 }, (_, n) => mebibyte(n));
  let most = 0;
  // Everything lives for a while, as what a request holds does, so that only a full collection frees it.
  for (let n = 0; n < 1_500; n += 1) {
    alive[n % 100] = mebibyte(n);
    most = Math.max(most, usedMib());
    if (n % 10 === 9) await pause(1);
  }
  expect(alive).toHaveLength(300);
  expect(most).toBeLessThan(700);
}, 30_000);

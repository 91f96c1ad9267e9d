import { expect, it } from 'vitest';
import { Recent } from './recent.js';

function counted(make: (count: number) => Promise<number>) {
  const world = { now: 0, made: 0 };
  const recent = new Recent(
    1_000,
    () => {
      world.made += 1;
      return make(world.made);
    },
    () => world.now,
  );
  return { world, recent };
}

it('an answer is made once for all who ask while it is recent, counted from when it was there', async () => {
  let open: () => void = () => undefined;
  const door = new Promise<void>((resolve) => {
    open = resolve;
  });
  const { world, recent } = counted((count) => door.then(() => count));
  const asked = [recent.get(), recent.get()];
  world.now = 5_000;
  asked.push(recent.get());
  open();
  expect(await Promise.all(asked)).toEqual([1, 1, 1]);
  world.now = 5_999;
  expect(await recent.get()).toBe(1);
  world.now = 6_000;
  expect(await recent.get()).toBe(2);
});

it('an answer that fails is made anew', async () => {
  const { recent } = counted(async (count) => {
    if (count === 1) throw new Error('no luck');
    return count;
  });
  await expect(recent.get()).rejects.toThrow('no luck');
  expect(await recent.get()).toBe(2);
});

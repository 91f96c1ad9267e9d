import { expect, it } from 'vitest';
import { SerialQueue } from './serial-queue.js';

it('runs one piece of work at a time, in order, and goes on after a failure', async () => {
  const queue = new SerialQueue();
  const seen: string[] = [];
  const work = (name: string) => async () => {
    seen.push(`${name} begins`);
    await Promise.resolve();
    seen.push(`${name} ends`);
    if (name === 'a') throw new Error('a fails');
    return name;
  };
  const results = await Promise.allSettled([queue.run(work('a')), queue.run(work('b'))]);
  expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
});

import { expect, it } from 'vitest';
import { SerialQueue, SerialQueues } from './serial-queue.js';

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

it('work under one name runs in order, work under another name does not wait for it, and names are forgotten', async () => {
  const queues = new SerialQueues();
  const done: string[] = [];
  let goOn = () => {};
  const first = queues.run('a', async () => {
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    done.push('a1');
  });
  const second = queues.run('a', async () => {
    done.push('a2');
    throw new Error('failed');
  });
  const third = queues.run('a', async () => done.push('a3'));
  await queues.run('b', async () => done.push('b1'));
  expect(queues.size).toBe(1);
  goOn();
  await Promise.all([first, expect(second).rejects.toThrow('failed'), third]);
  expect(done).toEqual(['b1', 'a1', 'a2', 'a3']);
  expect(queues.size).toBe(0);
});

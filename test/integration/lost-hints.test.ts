import { expect, it } from 'vitest';
import { nodeForTest } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

it('a job whose hint was lost is found, however much time passes until the next look', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock, settings: { hints: false, workerTimeout: '2d' } });
  const worker = await ProtocolWorker.register(node);
  // A look may fall between a submission and the leap, so there are several of them.
  const submitted: string[] = [];
  for (let leap = 0; leap < 5; leap++) {
    submitted.push((await node.submit({ task: 'work' })).id);
    clock.advance(60_000);
  }
  const claimed: string[] = [];
  while (claimed.length < submitted.length) claimed.push((await worker.claimOne()).jobId);
  expect(claimed.sort()).toEqual(submitted.sort());
});

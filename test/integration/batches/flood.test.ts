import { expect, it } from 'vitest';
import { task } from '../../../src/core/task.js';
import { nodeForTest } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { endedBatch, readBatch, submitBatch } from './batch-user.js';

const AGEING_MS = 500;
const LONGEST_MS = 300;

it('a flood of small jobs delays a batch by its ageing time and the longest running job, not for ever', async () => {
  const node = await nodeForTest({ settings: { batchAgeing: `${AGEING_MS}ms` } });
  let smallDone = 0;
  const small = task('small', async (ms: number) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    smallDone += 1;
  });
  const work = task('work', async () => 'done');
  await node.work([small, work], { slots: 2 });
  await node.work([small, work], { slots: 2 });
  const jobs = Array.from({ length: 400 }, (_, i) => ({
    task: 'small',
    payload: 20 + ((i * 37) % (LONGEST_MS - 20)),
  }));
  await node.get('POST', '/v1/jobs/bulk', { body: { jobs } });
  while (smallDone === 0) await new Promise((resolve) => setTimeout(resolve, 10));

  const batch = await submitBatch(node, 4);
  await endedBatch(node, batch.id);
  const { state, startedAt, createdAt } = await readBatch(node, batch.id);
  expect(state).toBe('succeeded');
  const waited = Date.parse(startedAt!) - Date.parse(createdAt);
  expect(smallDone).toBeLessThan(400);
  // A second for a slow machine; without a hold it would wait for the whole flood, which takes ten times as long.
  expect(waited).toBeLessThan(AGEING_MS + LONGEST_MS + 1_000);
});

it('an aged batch keeps the slots of its placement, and leaves all others to small jobs', async () => {
  const node = await nodeForTest({ settings: { batchAgeing: '0ms' } });
  const gpu = await ProtocolWorker.register(node, { slots: 2, labels: { gpu: 'yes' } });
  const plain = await ProtocolWorker.register(node, { slots: 1 });
  const { id } = await node.submit({ task: 'work', requires: { gpu: 'yes' } });
  expect(await gpu.claimOne()).toMatchObject({ jobId: id });
  const batch = await submitBatch(node, [{ requires: { gpu: 'yes' } }, { requires: { gpu: 'yes' } }]);
  const held = await node.submit({ task: 'work', requires: { gpu: 'yes' }, priority: 9 });
  const free = await node.submit({ task: 'work' });
  await gpu.claimNothing();
  expect(await plain.claimOne()).toMatchObject({ jobId: free.id });
  await gpu.succeed(gpu.held.get(id)!);
  const started = await gpu.claim(2);
  expect(started.map(({ jobId }) => jobId).sort()).toEqual(batch.jobs.map((job) => job.id).sort());
  for (const job of started) await gpu.succeed(job);
  expect(await gpu.claimOne()).toMatchObject({ jobId: held.id });
});

it('an aged batch keeps its room in the limit of a queue', async () => {
  const node = await nodeForTest({ settings: { batchAgeing: '0ms' } });
  await node.get('PATCH', '/v1/queues/tight', { body: { concurrency: 2 } });
  const worker = await ProtocolWorker.register(node, { slots: 10, queues: ['*'] });
  const first = await node.submit({ task: 'work', queue: 'tight' });
  expect(await worker.claimOne()).toMatchObject({ jobId: first.id });
  const batch = await submitBatch(node, [{ queue: 'tight' }, { queue: 'tight' }]);
  const small = await node.submit({ task: 'work', queue: 'tight', priority: 9 });
  await worker.claimNothing();
  await worker.succeed(worker.held.get(first.id)!);
  const started = await worker.claim(2);
  expect(started.map(({ jobId }) => jobId).sort()).toEqual(batch.jobs.map((job) => job.id).sort());
  await worker.claimNothing();
  for (const job of started) await worker.succeed(job);
  expect(await worker.claimOne()).toMatchObject({ jobId: small.id });
});

it('an impossible batch keeps nothing, and two large ones start one after the other', async () => {
  const node = await nodeForTest({ settings: { batchAgeing: '0ms' } });
  const worker = await ProtocolWorker.register(node, { slots: 3 });
  const impossible = await submitBatch(node, 4);
  const small = await node.submit({ task: 'work' });
  expect(await worker.claimOne()).toMatchObject({ jobId: small.id });
  const large = [await submitBatch(node, 3), await submitBatch(node, 3)];
  await worker.claimNothing();
  await worker.succeed(worker.held.get(small.id)!);
  for (const batch of large) {
    const started = await worker.claim(3);
    expect(started.map(({ jobId }) => jobId).sort()).toEqual(batch.jobs.map((job) => job.id).sort());
    for (const job of started) await worker.succeed(job);
  }
  expect((await readBatch(node, impossible.id)).state).toBe('pending');
});

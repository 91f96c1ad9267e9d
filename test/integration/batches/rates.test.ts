import { expect, it } from 'vitest';
import type { BatchWhy } from '../../../src/core/batch.js';
import { nodeForTest } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { submitBatch } from './batch-user.js';

it('an aged batch that waits for the rate of one queue holds up no other queue of its tenant', async () => {
  const node = await nodeForTest({ settings: { batchAgeing: '0ms' } });
  await node.get('PATCH', '/v1/queues/slow', { body: { rate: { limit: 1, per: '1h' } } });
  const worker = await ProtocolWorker.register(node, { slots: 2, queues: ['*'] });
  const first = await node.submit({ task: 'work', queue: 'slow' });
  expect(await worker.claimOne()).toMatchObject({ jobId: first.id });
  await worker.succeed(worker.held.get(first.id)!);

  const batch = await submitBatch(node, [{ queue: 'slow' }, { queue: 'brisk' }]);
  await worker.claimNothing();
  const why = await node.get<BatchWhy>('GET', `/v1/batches/${batch.id}/why`);
  expect(why).toMatchObject({ waitingFor: 'rate', figures: { holdsSlots: false } });
  // The rate opens in an hour: until then neither queue nor slots are kept from others.
  const others = [await node.submit({ task: 'work', queue: 'brisk' }), await node.submit({ task: 'work' })];
  while (worker.held.size < 2) await worker.claim(2);
  expect([...worker.held.keys()].sort()).toEqual(others.map(({ id }) => id).sort());
});

it('an aged batch gets the next token of a queue before small jobs that also wait for it', async () => {
  const node = await nodeForTest({ settings: { batchAgeing: '0ms' } });
  await node.get('PATCH', '/v1/queues/slow', { body: { rate: { limit: 2, per: '1s', burst: 1 } } });
  const worker = await ProtocolWorker.register(node, { slots: 4, queues: ['*'] });
  const first = await node.submit({ task: 'work', queue: 'slow' });
  expect(await worker.claimOne()).toMatchObject({ jobId: first.id });
  const small = await node.submit({ task: 'work', queue: 'slow', priority: 9 });
  const batch = await submitBatch(node, [{ queue: 'slow' }, {}]);
  const started = [await worker.claimOne(), await worker.claimOne(), await worker.claimOne()];
  const ids = started.map(({ jobId }) => jobId);
  expect(ids.slice(0, 2).sort()).toEqual(batch.jobs.map(({ id }) => id).sort());
  expect(ids[2]).toBe(small.id);
});

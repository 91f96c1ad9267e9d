import { expect, it, onTestFinished } from 'vitest';
import type { Assignment } from '../../../src/core/wire.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

/** A node that another can take the place of, under the same address. */
async function replaceable(): Promise<TestNode> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return nodeForTest({ database });
}

/** Has another node take over; the worker shows it what it holds, so that it is not offered that again. */
async function replace(earlier: TestNode, worker: ProtocolWorker): Promise<TestNode> {
  await earlier.node.stop();
  const later = await nodeForTest({ database: earlier.database, settings: { port: earlier.node.port } });
  const { epoch } = await worker.heartbeat();
  expect(await worker.heartbeat(undefined, epoch)).toMatchObject({ epoch, stop: [] });
  return later;
}

/** Claims until so many jobs have come, and makes sure that no more do. */
async function claimExactly(worker: ProtocolWorker, count: number): Promise<Assignment[]> {
  const jobs: Assignment[] = [];
  while (jobs.length < count) jobs.push(...(await worker.claim(50)));
  expect(jobs).toHaveLength(count);
  await worker.claimNothing();
  return jobs;
}

async function submit(node: TestNode, count: number, job: Record<string, unknown> = {}, tenant = 'default') {
  const jobs = Array.from({ length: count }, () => ({ task: 'work', ...job }));
  await node.get('POST', '/v1/jobs/bulk', { body: { jobs }, tenant });
}

it('a new leader counts what runs against the limits of queues and keys', async () => {
  const first = await replaceable();
  await first.get('PATCH', '/v1/queues/default', { body: { concurrency: 3 } });
  const worker = await ProtocolWorker.register(first, { slots: 50, queues: ['default', 'keyed'] });
  await submit(first, 10);
  await submit(first, 10, { queue: 'keyed', concurrencyKey: 'k' });
  await claimExactly(worker, 4);

  const second = await replace(first, worker);
  await worker.claimNothing();
  expect(await second.get('GET', '/v1/queues/default')).toMatchObject({ running: 3, concurrency: 3 });
  expect(await second.get('GET', '/v1/queues/keyed')).toMatchObject({ running: 1, keyConcurrency: 1 });
  for (let round = 0; round < 3; round++) {
    await worker.succeed([...worker.held.values()][0]!);
    await claimExactly(worker, 1);
  }
});

it('a new leader goes on with the buckets of queues and tenants where they were', async () => {
  const first = await replaceable();
  const rate = { limit: 1, per: '1h', burst: 4 };
  await first.get('PATCH', '/v1/queues/limited', { body: { rate } });
  await first.get('POST', '/v1/tenants', { body: { id: 'acme', rate } });
  const worker = await ProtocolWorker.register(first, { slots: 50, queues: ['*'], shared: true });
  await submit(first, 3, { queue: 'limited' });
  await submit(first, 3, {}, 'acme');
  await claimExactly(worker, 6);

  const second = await replace(first, worker);
  await submit(second, 20, { queue: 'limited' });
  await submit(second, 20, {}, 'acme');
  const after = await claimExactly(worker, 2);
  expect(after.map(({ tenant }) => tenant).sort()).toEqual(['acme', 'default']);

  const third = await replace(second, worker);
  await submit(third, 1, { queue: 'limited' });
  await worker.claimNothing();
});

it('a new leader gives a worker with a rate one job at most beyond it', async () => {
  const first = await replaceable();
  const worker = await ProtocolWorker.register(first, { rate: { limit: 1, per: '1h', burst: 5 } });
  await submit(first, 10);
  await claimExactly(worker, 1);
  await replace(first, worker);
  await claimExactly(worker, 1);
});

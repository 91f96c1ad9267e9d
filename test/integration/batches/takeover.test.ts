import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../../database.js';
import { nodeForTest, TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { endedBatch, submitBatch } from './batch-user.js';

/** More than one page of them. */
const BATCHES = 130;

it('a new leader starts all batches that wait, and those that come while it reads them', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const before = await TestNode.start({ database });
  const batches = [];
  for (let i = 0; i < BATCHES; i += 1) batches.push(await submitBatch(before, 2));
  await before.stop();

  const node = await nodeForTest({ database });
  const late = await submitBatch(node, 2);
  const worker = await ProtocolWorker.register(node, { slots: 2 });
  const started: string[] = [];
  for (let i = 0; i <= BATCHES; i += 1) {
    while (worker.held.size < 2) await worker.claim(2);
    const jobs = [...worker.held.values()];
    started.push((await node.job(jobs[0]!.jobId)).batch!);
    for (const job of jobs) await worker.succeed(job);
  }
  expect(new Set(started)).toEqual(new Set([...batches, late].map(({ id }) => id)));
  expect(await endedBatch(node, late.id)).toMatchObject({ state: 'succeeded' });
});

it('a new leader ends a batch all of whose members have ended while it waited', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const before = await TestNode.start({ database });
  const batch = await submitBatch(before, 1);
  await before.get('POST', `/v1/batches/${batch.id}/cancel`);
  await before.stop();
  // As if the leader had died after the end of the member.
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("UPDATE punctual.batches SET state = 'pending', ended_at = NULL");
  await client.end();

  const node = await nodeForTest({ database });
  expect(await endedBatch(node, batch.id)).toMatchObject({ state: 'cancelled' });
});

it('a new leader starts no batch on a worker that it has not heard of', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const before = await TestNode.start({ database });
  const silent = await ProtocolWorker.register(before, { slots: 2 });
  await before.stop();

  const node = await nodeForTest({ database });
  const live = await ProtocolWorker.register(node, { slots: 2 });
  await submitBatch(node, 2);
  while (live.held.size < 2) await live.claim(2);
  for (const job of live.held.values()) await live.succeed(job);

  const large = await submitBatch(node, 4);
  const heartbeat = { epoch: 0, running: [] };
  await node.get('POST', `/v1/workers/${silent.id}/heartbeat`, { body: heartbeat });
  while (live.held.size < 2) await live.claim(2);
  expect(await node.get('GET', `/v1/batches/${large.id}`)).toMatchObject({ state: 'running' });
});

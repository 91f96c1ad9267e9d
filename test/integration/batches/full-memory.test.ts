import { expect, it, onTestFinished } from 'vitest';
import { SILENT_LOG } from '../../../src/core/log.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { endedBatch, readBatch, submitBatch } from './batch-user.js';

/** What a leader holds in memory. */
interface LeaderMemory {
  readonly gangs: { mostMembers: number; readonly waitingCount: number; readonly hasMore: boolean };
  readonly directory: { readonly needs: Map<number, unknown> };
}

function memoryOf(node: TestNode): LeaderMemory {
  const leader = node.node.context.shards[0].currentLeader();
  return (leader as unknown as { readonly state: LeaderMemory }).state;
}

/** A node that leads and has room for the members of two batches of two. */
async function crampedNode(): Promise<TestNode> {
  const node = await nodeForTest();
  await until(() => node.node.leads());
  memoryOf(node).gangs.mostMembers = 4;
  return node;
}

it('batches that memory has no room for start in their turn, each once', async () => {
  const node = await crampedNode();
  const batches = [];
  for (let i = 0; i < 7; i += 1) batches.push(await submitBatch(node, 2));
  expect(memoryOf(node).gangs).toMatchObject({ waitingCount: 2, hasMore: true });
  const worker = await ProtocolWorker.register(node, { slots: 2 });
  const started: string[] = [];
  for (let i = 0; i < batches.length; i += 1) {
    while (worker.held.size < 2) await worker.claim(2);
    const jobs = [...worker.held.values()];
    const [first, second] = await Promise.all(jobs.map(async ({ jobId }) => (await node.job(jobId)).batch!));
    expect(first).toBe(second);
    started.push(first!);
    for (const job of jobs) await worker.succeed(job);
  }
  expect(started).toEqual(batches.map(({ id }) => id));
  for (const { id } of batches) expect((await endedBatch(node, id)).run).toBe(1);
  expect(memoryOf(node).gangs.waitingCount).toBe(0);
});

it('a batch that memory has no room for fails in time, is cancelled, and loses nothing by a member that is', async () => {
  const node = await crampedNode();
  for (let i = 0; i < 2; i += 1) await submitBatch(node, 2);
  const late = await submitBatch(node, 2, { startTimeout: '100ms' });
  const cancelled = await submitBatch(node, 2);
  const broken = await submitBatch(node, 2);
  const patient = await submitBatch(node, 2, { startTimeout: '1h' });
  expect(memoryOf(node).gangs).toMatchObject({ waitingCount: 2, hasMore: true });
  const failed = await endedBatch(node, late.id);
  expect(failed).toMatchObject({ state: 'failed', error: { code: 'BATCH_NOT_STARTED' } });
  await node.get('POST', `/v1/batches/${cancelled.id}/cancel`);
  expect((await readBatch(node, cancelled.id)).state).toBe('cancelled');
  await node.get('POST', `/v1/jobs/${broken.jobs[0]!.id}/cancel`);
  const worker = await ProtocolWorker.register(node, { slots: 2 });
  const started = new Set<string>();
  for (let i = 0; i < 3; i += 1) {
    while (worker.held.size < 2) await worker.claim(2);
    const jobs = [...worker.held.values()];
    for (const { jobId } of jobs) started.add((await node.job(jobId)).batch!);
    for (const job of jobs) await worker.succeed(job);
  }
  expect(started).toContain(patient.id);
  expect((await endedBatch(node, broken.id)).state).toBe('cancelled');
});

it('if names cannot be read after the start of a batch was taken back, a new term finds out how things are', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const doubts: string[] = [];
  const note = (fields: object) => void doubts.push(JSON.stringify(fields));
  const node = await nodeForTest({ database, log: { ...SILENT_LOG, error: note } });
  const leaving = await ProtocolWorker.register(node, { slots: 1 });
  const staying = await ProtocolWorker.register(node, { slots: 1 });
  const batch = await submitBatch(node, 2);
  await until(async () => (await readBatch(node, batch.id)).state === 'running');
  const epochOf = () => node.node.context.shards[0].currentLeader()?.epoch;
  const before = epochOf()!;
  // As when there are very many names, and memory has forgotten those of running jobs.
  memoryOf(node).directory.needs.clear();
  await withClient(database.url, (client) => client.query('ALTER TABLE punctual.needs RENAME TO hidden'));
  await node.ask('DELETE', `/v1/workers/${leaving.id}`);
  await until(async () => epochOf() !== before);
  await withClient(database.url, (client) => client.query('ALTER TABLE punctual.hidden RENAME TO needs'));
  await until(() => epochOf() !== undefined && epochOf()! > before);
  // Its leaving was not written before the term ended.
  await node.ask('DELETE', `/v1/workers/${leaving.id}`);
  const late = await ProtocolWorker.register(node, { slots: 1 });
  for (const worker of [staying, late]) {
    while (worker.held.size === 0) await worker.claim(1);
    // The first fence was used up by what was taken back.
    expect([...worker.held.values()][0]!.fence).toBeGreaterThan(1);
  }
  expect((await readBatch(node, batch.id)).state).toBe('running');
  expect(doubts.join()).toContain('could not be taken in after its start was taken back');
}, 60_000);

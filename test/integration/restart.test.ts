import { expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { task } from '../../src/core/task.js';
import type { Page, StatsView } from '../../src/core/wire.js';
import { connect } from '../../src/sdk/connect.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { Door, Happening } from '../happening.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { countPlaces } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';

async function database(): Promise<TestDatabase> {
  const made = await createTestDatabase();
  onTestFinished(() => made.drop());
  return made;
}

/** A node that takes the place of another: same database, same port. */
function inPlaceOf(earlier: TestNode): Promise<TestNode> {
  return nodeForTest({ database: earlier.database, settings: { port: earlier.node.port } });
}

it('everything that waits is found again: due, upcoming, far ahead, held, to be retried', async () => {
  const first = await nodeForTest({ database: await database() });
  const worker = await ProtocolWorker.register(first);
  const retried = await first.submit({ task: 'work', retry: { backoff: { base: '1ms' } } });
  await worker.fail(await worker.claimOne());
  await first.get('POST', '/v1/cluster/pause');
  const due = await first.submit({ task: 'work', payload: 'due' });
  const soon = await first.submit({ task: 'work', delay: '300ms' });
  const held = await first.submit({ task: 'work', hold: true });
  const far = await first.submit({ task: 'work', delay: '1h' });
  await first.node.stop();

  const second = await inPlaceOf(first);
  await second.get('POST', '/v1/cluster/resume');
  const next = await ProtocolWorker.register(second);
  const claimed: string[] = [];
  while (claimed.length < 3) claimed.push((await next.claimOne()).jobId);
  expect(claimed.sort()).toEqual([retried.id, due.id, soon.id].sort());
  expect(await second.job(held.id)).toMatchObject({ state: 'pending', hold: true });
  expect(await second.job(far.id)).toMatchObject({ state: 'pending' });
  await second.get('POST', `/v1/jobs/${held.id}/release`);
  expect(await next.claimOne()).toMatchObject({ jobId: held.id });
  expect((await second.get<StatsView>('GET', '/v1/stats')).leaderElections).toBe(2);
});

it('a worker goes on while there is no node, and delivers what it finished to the next', async () => {
  const first = await nodeForTest({ database: await database() });
  const started = new Happening<number>();
  const door = new Door();
  const finished = new Happening();
  const slow = task('slow', async (n: number) => {
    started.happen(n);
    await door.opened;
    return n * 10;
  });
  const punctual = connect({ url: first.url, apiKey: first.apiKey });
  const registered = new Happening<string>();
  const worker = punctual.worker([slow], {
    slots: 3,
    events: { onJobEnded: () => finished.happen(), onRegistered: registered.happen },
  });
  await worker.start();
  onTestFinished(async () => {
    await worker.stop();
    await punctual.close();
  });
  const handles = await punctual.submitMany(slow, [1, 2, 3, 4]);
  await started.times(3);
  await first.node.stop();
  door.open();
  await finished.times(3);
  expect(worker.status()).toMatchObject({ unanswered: 3 });

  const second = await inPlaceOf(first);
  const jobs = await Promise.all(handles.map((handle) => second.ended(handle.id)));
  expect(jobs.map((job) => [job.state, job.result, job.attempt])).toEqual([
    ['succeeded', 10, 1],
    ['succeeded', 20, 1],
    ['succeeded', 30, 1],
    ['succeeded', 40, 1],
  ]);
  // Each handler ran once: nothing was started again behind the worker's back.
  expect(started.all.sort()).toEqual([1, 2, 3, 4]);
  expect(registered.all).toHaveLength(1);
});

it('a worker that the new leader has given up registers again and goes on', async () => {
  const settings = { heartbeatInterval: '100ms', workerTimeout: '400ms' };
  const first = await nodeForTest({ database: await database(), settings });
  const registered = new Happening<string>();
  const quick = task('quick', (n: number) => n + 1);
  const punctual = first.connect();
  const worker = punctual.worker([quick], { events: { onRegistered: registered.happen } });
  await worker.start();
  first.onStop(() => worker.stop());
  await first.ask('DELETE', `/v1/workers/${worker.status().workerId}`);
  await registered.times(2);
  expect(await (await punctual.submit(quick, 1)).result()).toBe(2);
  expect(registered.all[0]).not.toBe(registered.all[1]);
});

it('a claim that was committed but never handed over starts once, on the worker it was made for', async () => {
  const settings = { heartbeatInterval: '200ms', workerTimeout: '1h' };
  const first = await nodeForTest({ database: await database(), settings });
  const worker = await ProtocolWorker.register(first);
  const { id } = await first.submit({ task: 'work', delivery: 'at-most-once' });
  const [taken] = await worker.claimSilently();
  expect(taken).toMatchObject({ jobId: id, fence: 1 });
  await first.node.stop();

  const second = await nodeForTest({
    database: first.database,
    settings: { ...settings, port: first.node.port },
  });
  expect(await second.job(id)).toMatchObject({ state: 'running', worker: worker.id });
  expect(await worker.claimOne()).toMatchObject({ jobId: id, fence: 1 });
  expect(await worker.succeed({ jobId: id, fence: 1 }, 'once')).toMatchObject({ accepted: [id] });
  expect(await second.job(id)).toMatchObject({ state: 'succeeded', attempt: 1 });
});

it('stopping and starting again and again in the middle of work loses and doubles nothing', async () => {
  let node = await nodeForTest({ database: await database() });
  const starts = new Map<string, number>();
  const count = task('count', async (_: null, { jobId, fence }) => {
    starts.set(`${jobId}/${fence}`, (starts.get(`${jobId}/${fence}`) ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
  });
  const punctual = connect({ url: node.url, apiKey: node.apiKey });
  const reported = new Happening();
  const worker = punctual.worker([count], { slots: 20, events: { onJobReported: () => reported.happen() } });
  await worker.start();
  onTestFinished(async () => {
    await worker.stop();
    await punctual.close();
  });
  const total = 2_000;
  await punctual.submitMany(count, new Array(total).fill(null));
  for (const share of [0.2, 0.4, 0.6]) {
    await reported.times(total * share);
    await node.node.stop();
    node = await inPlaceOf(node);
  }
  await reported.times(total);
  const failed = await node.get<Page<Job>>('GET', '/v1/jobs?state=failed');
  expect(failed.data).toEqual([]);
  expect(await countPlaces(node.database.url)).toMatchObject({ live: 0, claims: 0, history: total });
  expect(starts.size).toBe(total);
  expect(new Set(starts.values())).toEqual(new Set([1]));
  expect((await node.get<StatsView>('GET', '/v1/stats')).jobsCompleted).toBe(total);
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Assignment, ClusterView, QueueView } from '../../src/core/wire.js';
import { type ApiUser, nodeForTest, TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** One node for all but those that stop dispatch; each test has a tenant of its own. */
let shared: TestNode;

beforeAll(async () => {
  shared = await TestNode.start();
});
afterAll(() => shared.stop());

function bulk(node: ApiUser, jobs: readonly Record<string, unknown>[]): Promise<{ ids: string[] }> {
  return node.get('POST', '/v1/jobs/bulk', { body: { jobs } });
}

/** Claims one after the other, as a worker with one slot would. */
async function inOrder(worker: ProtocolWorker, count: number): Promise<Assignment[]> {
  const jobs: Assignment[] = [];
  while (jobs.length < count) {
    const job = await worker.claimOne();
    jobs.push(job);
    await worker.succeed(job);
  }
  return jobs;
}

it('jobs start by priority, 9 first, and in the order of their submission inside a priority', async () => {
  const node = shared.newTenant();
  const priorities = [1, 5, 9, 5, 1, 9, 7, 5];
  const { ids } = await bulk(
    node,
    priorities.map((priority) => ({ task: 'work', priority })),
  );
  const expected = ids
    .map((id, index) => ({ id, index, priority: priorities[index]! }))
    .sort((a, b) => b.priority - a.priority || a.index - b.index)
    .map(({ id }) => id);
  const worker = await ProtocolWorker.register(node, { slots: 1 });
  expect((await inOrder(worker, ids.length)).map((job) => job.jobId)).toEqual(expected);
});

it('a more urgent job overtakes what waits, even with a long backlog', async () => {
  const node = shared.newTenant();
  await bulk(
    node,
    Array.from({ length: 500 }, () => ({ task: 'work', priority: 5 })),
  );
  const { id } = await node.submit({ task: 'work', priority: 6 });
  const worker = await ProtocolWorker.register(node);
  expect(await worker.claimOne()).toMatchObject({ jobId: id });
});

it('jobs that no worker can do never stand in the way of jobs that one can', async () => {
  const node = shared.newTenant();
  await bulk(node, [
    ...Array.from({ length: 300 }, () => ({ task: 'unknown', priority: 9 })),
    ...Array.from({ length: 300 }, () => ({ task: 'work', requires: { region: 'eu' }, priority: 9 })),
    { target: { type: 'handler', name: 'unknown' }, priority: 9 },
  ]);
  const { id } = await node.submit({ task: 'work', priority: 1 });
  const worker = await ProtocolWorker.register(node, { slots: 1 });
  expect(await worker.claimOne()).toMatchObject({ jobId: id });
  await worker.claimNothing();
});

it('a job goes only to a worker with every label it requires', async () => {
  const node = shared.newTenant();
  const plain = await ProtocolWorker.register(node);
  const partly = await ProtocolWorker.register(node, { labels: { region: 'eu' } });
  const fully = await ProtocolWorker.register(node, { labels: { region: 'eu', gpu: 'yes', more: 'x' } });
  const { id } = await node.submit({ task: 'work', requires: { region: 'eu', gpu: 'yes' } });
  await Promise.all([plain.claimNothing(), partly.claimNothing()]);
  expect(await fully.claimOne()).toMatchObject({ jobId: id });
});

it('a worker gets jobs of its queues only', async () => {
  const node = shared.newTenant();
  const mail = await ProtocolWorker.register(node, { queues: ['mail'] });
  await node.submit({ task: 'work' });
  const { id } = await node.submit({ task: 'work', queue: 'mail' });
  expect(await mail.claim(10)).toMatchObject([{ jobId: id }]);
  await mail.claimNothing();
});

it('queues take turns: a flood in one does not delay a job in another', async () => {
  const node = shared.newTenant();
  await bulk(
    node,
    Array.from({ length: 1_000 }, () => ({ task: 'work', queue: 'flood', priority: 9 })),
  );
  const { id } = await node.submit({ task: 'work', queue: 'quiet', priority: 1 });
  // The leader has to read the name of a new queue before it can choose from it.
  await expect.poll(async () => (await node.get<QueueView>('GET', '/v1/queues/quiet')).ready).toBe(1);
  const worker = await ProtocolWorker.register(node, { queues: ['flood', 'quiet'], slots: 4 });
  expect((await inOrder(worker, 2)).map((job) => job.jobId)).toContain(id);
});

it('waiting workers share what comes evenly', async () => {
  const node = await nodeForTest();
  const workers = await Promise.all([1, 2, 3].map(() => ProtocolWorker.register(node)));
  await node.get('POST', '/v1/cluster/pause');
  const claims = workers.map((worker) => worker.claim(10));
  await bulk(
    node,
    Array.from({ length: 9 }, () => ({ task: 'work' })),
  );
  await node.get('POST', '/v1/cluster/resume');
  expect((await Promise.all(claims)).map((jobs) => jobs.length)).toEqual([3, 3, 3]);
});

it('a paused queue starts nothing, its running jobs go on, and the other queues too', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { queues: ['default', 'other'] });
  await bulk(node, [{ task: 'work' }, { task: 'work', priority: 1 }]);
  const running = await worker.claimOne();
  expect(await node.get('POST', '/v1/queues/default/pause')).toMatchObject({
    name: 'default',
    paused: true,
    ready: 1,
    running: 1,
  });
  expect(await node.ask('POST', '/v1/queues/default/pause')).toMatchObject({
    status: 409,
    body: { code: 'ALREADY_PAUSED' },
  });
  await worker.claimNothing();
  expect(await worker.succeed(running, 'in spite of it')).toMatchObject({ accepted: [running.jobId] });
  const other = await node.submit({ task: 'work', queue: 'other' });
  expect(await worker.claimOne()).toMatchObject({ jobId: other.id });
  const claim = worker.claimOne();
  expect(await node.get('POST', '/v1/queues/default/resume')).toMatchObject({ paused: false });
  expect(await claim).toMatchObject({ task: 'work' });
  expect(await node.ask('POST', '/v1/queues/default/resume')).toMatchObject({
    status: 409,
    body: { code: 'NOT_PAUSED' },
  });
  expect(await node.ask('POST', '/v1/queues/nowhere/pause')).toMatchObject({
    status: 404,
    body: { code: 'QUEUE_NOT_FOUND' },
  });
  const { data } = await node.get<{ data: QueueView[] }>('GET', '/v1/queues');
  expect(data.map((queue) => queue.name).sort()).toEqual(['default', 'other']);
});

it('a paused cluster starts nothing while running jobs go on, and stays paused over a restart', async () => {
  const first = await nodeForTest();
  const worker = await ProtocolWorker.register(first);
  await first.submit({ task: 'work' });
  const running = await worker.claimOne();
  expect(await first.get<ClusterView>('POST', '/v1/cluster/pause')).toMatchObject({ paused: true });
  expect(await first.ask('POST', '/v1/cluster/pause')).toMatchObject({
    status: 409,
    body: { code: 'ALREADY_PAUSED' },
  });
  const { id } = await first.submit({ task: 'work' });
  await worker.claimNothing();
  expect(await worker.succeed(running)).toMatchObject({ accepted: [running.jobId] });
  await first.node.stop();

  const second = await nodeForTest({ database: first.database });
  expect(await second.get<ClusterView>('GET', '/v1/cluster')).toMatchObject({ paused: true });
  const next = await ProtocolWorker.register(second);
  await next.claimNothing();
  const claim = next.claimOne();
  await second.get('POST', '/v1/cluster/resume');
  expect(await claim).toMatchObject({ jobId: id });
  expect(await second.ask('POST', '/v1/cluster/resume')).toMatchObject({
    status: 409,
    body: { code: 'NOT_PAUSED' },
  });
});

it('the claim that is open when a worker is told to drain is answered at once, with nothing', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node);
  const answers: unknown[] = [];
  const claim = worker.claimSilently(1, '60s').then((jobs) => answers.push(jobs));
  // Ordered again while the claim may still be on its way.
  const drained = async () => {
    await node.get('POST', `/v1/workers/${worker.id}/drain`);
    return answers;
  };
  await expect.poll(drained).toEqual([[]]);
  await claim;
});

it('a draining worker gets nothing more, finishes what it has and leaves', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node);
  await bulk(node, [{ task: 'work' }, { task: 'work' }]);
  const running = await worker.claimOne();
  expect(await node.get('POST', `/v1/workers/${worker.id}/drain`)).toMatchObject({
    id: worker.id,
    state: 'draining',
    running: 1,
  });
  await worker.claimNothing();
  expect(await worker.heartbeat()).toMatchObject({ drain: true, stop: [] });
  await worker.succeed(running);
  expect((await node.ask('DELETE', `/v1/workers/${worker.id}`)).status).toBe(204);
  expect(await node.ask('POST', `/v1/workers/${worker.id}/drain`)).toMatchObject({
    status: 404,
    body: { code: 'WORKER_NOT_FOUND' },
  });
});

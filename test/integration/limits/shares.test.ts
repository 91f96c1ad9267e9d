import { describe, expect, it } from 'vitest';
import type { Caller } from '../../../src/api/caller.js';
import { registerWorker, reportResults } from '../../../src/api/workers.js';
import { task } from '../../../src/core/task.js';
import type { Assignment, Page, StoredLogLine, WorkerView } from '../../../src/core/wire.js';
import { connect } from '../../../src/sdk/connect.js';
import { startNode } from '../../../src/server.js';
import { createOperatorKey } from '../../../src/store/operator-key.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

const SHARED = { shared: true, queues: ['*'], slots: 10_000 };

async function submit(node: TestNode, count: number, job: Record<string, unknown>, tenant?: string) {
  const jobs = Array.from({ length: count }, () => ({ task: 'work', ...job }));
  return node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
    body: { jobs },
    ...(tenant !== undefined && { tenant }),
  });
}

/** Waits until the leader has heard of the jobs of a queue. */
async function known(node: TestNode, queue: string, ready: number, tenant = 'default'): Promise<void> {
  const view = () => node.get('GET', `/v1/queues/${queue}`, { tenant });
  await expect.poll(view, { timeout: 10_000 }).toMatchObject({ ready });
}

/** Claims a few at a time, so that turns are taken over many claims. */
async function started(worker: ProtocolWorker, count: number): Promise<Assignment[]> {
  const jobs: Assignment[] = [];
  while (jobs.length < count) jobs.push(...(await worker.claim(Math.min(7, count - jobs.length))));
  return jobs;
}

describe('weights', () => {
  it('of 3 and 1 give two queues three starts to one', async () => {
    const node = await nodeForTest();
    await node.get('PATCH', '/v1/queues/heavy', { body: { weight: 3 } });
    const heavy = new Set((await submit(node, 400, { queue: 'heavy', priority: 1 })).ids);
    await submit(node, 400, { queue: 'light', priority: 9 });
    await Promise.all(['heavy', 'light'].map((queue) => known(node, queue, 400)));
    const worker = await ProtocolWorker.register(node, { queues: ['heavy', 'light'], slots: 1_000 });
    const jobs = await started(worker, 200);
    expect(jobs.filter(({ jobId }) => heavy.has(jobId))).toHaveLength(150);
  });

  it('of 3 and 1 give two tenants three starts to one of a shared worker, however many queues each uses', async () => {
    const node = await nodeForTest();
    await node.get('POST', '/v1/tenants', { body: { id: 'big', weight: 3 } });
    await submit(node, 300, {}, 'big');
    for (let i = 0; i < 20; i++) await submit(node, 20, { queue: `q${i}` }, 'small');
    await Promise.all([known(node, 'default', 300, 'big'), known(node, 'q19', 20, 'small')]);
    const worker = await ProtocolWorker.register(node, SHARED);
    const count = (jobs: Assignment[]) => jobs.filter(({ tenant }) => tenant === 'big').length;
    expect(count(await started(worker, 200))).toBe(150);
    // A weight that changes counts from the next turn on.
    await node.get('PATCH', '/v1/tenants/big', { body: { weight: 1 } });
    const rest = count(await started(worker, 100));
    expect(rest).toBeGreaterThanOrEqual(50);
    expect(rest).toBeLessThanOrEqual(53);
  });

  it('leave nothing unused: who is alone gets everything', async () => {
    const node = await nodeForTest();
    await node.get('PATCH', '/v1/queues/light', { body: { weight: 1 } });
    await node.get('PATCH', '/v1/queues/heavy', { body: { weight: 1_000 } });
    await submit(node, 100, { queue: 'light' });
    await known(node, 'light', 100);
    const worker = await ProtocolWorker.register(node, { queues: ['heavy', 'light'], slots: 1_000 });
    expect(await worker.claim(100)).toHaveLength(100);
  });
});

it('a job that is next in its queue but not in turn says so, with the shares', async () => {
  const node = await nodeForTest();
  await node.get('PATCH', '/v1/queues/mine', { body: { weight: 2 } });
  await ProtocolWorker.register(node, SHARED);
  const { ids } = await submit(node, 2, { queue: 'mine' });
  await known(node, 'mine', 2);
  expect(await node.get('GET', `/v1/jobs/${ids[0]}/why`)).toMatchObject({
    gate: 'no-free-slot',
    detail: expect.stringContaining('none of them is asking'),
  });
  await submit(node, 1, { queue: 'other' });
  await submit(node, 1, {}, 'acme');
  await Promise.all([known(node, 'other', 1), known(node, 'default', 1, 'acme')]);
  expect(await node.get('GET', `/v1/jobs/${ids[0]}/why`)).toMatchObject({
    gate: 'share',
    figures: { otherQueues: 1, weight: 2, otherTenants: 1, tenantWeight: 1, readyInQueue: 2 },
  });
  expect(await node.get('GET', `/v1/jobs/${ids[1]}/why`)).toMatchObject({ gate: 'behind-others' });
});

describe('a worker for all queues', () => {
  it('gets jobs of queues that come into being after it, of its own tenant only', async () => {
    const node = await nodeForTest();
    const worker = await ProtocolWorker.register(node, { queues: ['*'] });
    const claim = worker.claimOne();
    await node.submit({ task: 'work', queue: 'new' }, 'stranger');
    const { id } = await node.submit({ task: 'work', queue: 'new' });
    expect(await claim).toMatchObject({ jobId: id, tenant: 'default' });
    await worker.claimNothing();
  });
});

describe('a shared worker', () => {
  it('runs jobs of every tenant, and its results, progress and logs are theirs', async () => {
    const node = await nodeForTest();
    const work = task('work', async (_: unknown, ctx) => {
      ctx.log(`for ${ctx.tenant}`);
      await ctx.progress(0.5, ctx.tenant);
      return ctx.tenant;
    });
    await node.work([work], { shared: true, queues: ['*'], rate: '1000/1s' });
    for (const tenant of ['a', 'b']) {
      const { id } = await node.submit({ task: 'work' }, tenant);
      expect(await node.ended(id, tenant)).toMatchObject({
        ...{ state: 'succeeded', result: tenant, tenant },
        progress: { progress: 0.5, message: tenant },
      });
      const logs = await node.get<Page<StoredLogLine>>('GET', `/v1/jobs/${id}/logs`, { tenant });
      expect(logs.data).toMatchObject([{ message: `for ${tenant}` }]);
    }
    const { data } = await node.get<Page<WorkerView>>('GET', '/v1/workers');
    expect(data).toMatchObject([{ shared: true, rate: { limit: 1_000, per: '1s' }, queues: ['*'] }]);
  });

  it('does the same inside the process of a node', async () => {
    const database = await createTestDatabase();
    const node = await startNode({ databaseUrl: database.url, tenant: 'own' });
    const work = task('work', async (_: unknown, ctx) => {
      ctx.log('heard');
      await ctx.progress(0.25);
      return ctx.tenant;
    });
    const worker = node.punctual.worker([work], { shared: true });
    try {
      await worker.start();
      const own = await node.punctual.submit(work);
      expect(await own.result()).toBe('own');
      const { key } = await createOperatorKey(database.url, 'tester');
      const other = connect({ url: node.url, apiKey: key, tenant: 'other' });
      const job = await other.submit(work);
      expect(await job.result()).toBe('other');
      expect(await job.get()).toMatchObject({ tenant: 'other', progress: { progress: 0.25 } });
      await other.close();
    } finally {
      await worker.stop();
      await node.stop();
      await database.drop();
    }
  });

  it('is refused to whoever is no operator, and so are results for another tenant', async () => {
    const node = await nodeForTest();
    const { context } = node.node;
    const caller: Caller = { tenant: 'b', actor: 'somebody', operator: false };
    const registration = {
      ...{ name: 'w', queues: ['*'], slots: 1, targets: ['handler' as const], tasks: ['work'], labels: {} },
    };
    const shared = { ...registration, shared: true };
    await expect(registerWorker(context, caller, shared)).rejects.toMatchObject({ code: 'FORBIDDEN' });

    const { id } = await node.submit({ task: 'work' }, 'a');
    const rightful = await ProtocolWorker.register(node, {}, 'a');
    const running = await rightful.claimOne();
    const session = await registerWorker(context, caller, registration);
    const succeeded = { outcome: 'succeeded' as const, result: 'forged' };
    const forged = { jobId: id, fence: running.fence, tenant: 'a', ...succeeded };
    expect(await reportResults(context, caller, session, { results: [forged] })).toMatchObject({
      accepted: [],
      stale: [id],
    });
    expect(await node.job(id, 'a')).toMatchObject({ state: 'running' });
    expect(await rightful.succeed(running, 'genuine')).toMatchObject({ accepted: [id] });
  });
});

import { describe, expect, it, onTestFinished } from 'vitest';
import { Bucket } from '../../../src/core/rate.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { TestClock } from '../../test-clock.js';

/** Time stands still unless a test moves it, so what starts is what the rate lets through, and nothing else. */
async function nodeInStillTime(): Promise<{ clock: TestClock; node: TestNode }> {
  const clock = new TestClock();
  return { clock, node: await nodeForTest({ clock, settings: { workerTimeout: '2d' } }) };
}

async function submit(node: TestNode, count: number, job: Record<string, unknown> = {}, tenant = 'default') {
  const jobs = Array.from({ length: count }, () => ({ task: 'work', ...job }));
  await node.get('POST', '/v1/jobs/bulk', { body: { jobs }, tenant });
}

/** Claims until so many jobs have started, and makes sure that no more do. */
async function expectStarts(worker: ProtocolWorker, count: number): Promise<void> {
  let started = 0;
  while (started < count) started += (await worker.claim(100)).length;
  expect(started).toBe(count);
  await worker.claimNothing();
}

/** Moves time in uneven steps; what starts is what a bucket lets through that is drawn on whenever it is open. */
async function expectToFollow(clock: TestClock, worker: ProtocolWorker, bucket: Bucket): Promise<void> {
  for (const step of [0, 40, 100, 10, 350, 100, 1, 99, 700, 25, 50]) {
    clock.advance(step);
    let count = 0;
    for (; bucket.isOpen(clock.now()); count++) bucket.draw(clock.now());
    await expectStarts(worker, count);
  }
}

describe('a rate', () => {
  it('of a queue is kept to, and holds up no other queue', async () => {
    const { clock, node } = await nodeInStillTime();
    const rate = { limit: 10, per: '1s', burst: 3 };
    expect(await node.get('PATCH', '/v1/queues/default', { body: { rate } })).toMatchObject({ rate });
    const worker = await ProtocolWorker.register(node, { slots: 100 });
    const other = await ProtocolWorker.register(node, { slots: 100, queues: ['other'] });
    await submit(node, 100);
    await submit(node, 20, { queue: 'other' });
    await expectToFollow(clock, worker, new Bucket({ limit: 10, perMs: 1_000, burst: 3 }, 0));
    await expectStarts(other, 20);
  });

  it('of a tenant is kept to over all its queues and workers, and holds up no other tenant', async () => {
    const { clock, node } = await nodeInStillTime();
    await node.get('POST', '/v1/tenants', { body: { id: 'acme', rate: { limit: 10, per: '1s', burst: 2 } } });
    const registration = { slots: 100, queues: ['*'], shared: true };
    const worker = await ProtocolWorker.register(node, registration);
    for (const queue of ['a', 'b', 'c']) await submit(node, 30, { queue }, 'acme');
    await expectToFollow(clock, worker, new Bucket({ limit: 10, perMs: 1_000, burst: 2 }, 0));
    await submit(node, 7, {}, 'other');
    await expectStarts(worker, 7);
  });

  it('of a worker is kept to by it alone', async () => {
    const { clock, node } = await nodeInStillTime();
    const slow = await ProtocolWorker.register(node, {
      slots: 100,
      rate: { limit: 10, per: '1s', burst: 2 },
    });
    await submit(node, 100);
    // Nobody knows what it started under other leaders, so it begins with one and no burst.
    const bucket = Bucket.drained({ limit: 10, perMs: 1_000, burst: 2 }, clock.now());
    await expectToFollow(clock, slow, bucket);
    await expectStarts(await ProtocolWorker.register(node, { slots: 100 }), 100 - slow.held.size);
  });

  it('of a worker counts for all its claims together', async () => {
    const { node } = await nodeInStillTime();
    const worker = await ProtocolWorker.register(node, { rate: { limit: 1, per: '1h', burst: 1 } });
    const claims = [1, 2, 3].map(() => worker.claimSilently(5, '20s'));
    await submit(node, 10);
    await Promise.race(claims);
    await worker.claimNothing();
    // A node that stops sends whoever still waits elsewhere.
    const answers = Promise.allSettled(claims);
    await node.node.stop();
    const given = (await answers).flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    expect(given).toHaveLength(1);
  });

  it('is kept to by jobs that are submitted one by one while a worker waits', async () => {
    const { clock, node } = await nodeInStillTime();
    await node.get('PATCH', '/v1/queues/default', { body: { rate: { limit: 1, per: '1s', burst: 2 } } });
    const worker = await ProtocolWorker.register(node, { slots: 100 });
    const claim = worker.claim(1);
    for (let i = 0; i < 6; i++) await node.submit({ task: 'work' });
    expect(await claim).toHaveLength(1);
    await expectStarts(worker, 1);
    clock.advance(1_000);
    await expectStarts(worker, 1);
  });

  it('that is changed applies at once; one that is taken away holds up nothing more', async () => {
    const { clock, node } = await nodeInStillTime();
    const limit = (rate: unknown) => node.get('PATCH', '/v1/queues/default', { body: { rate } });
    await limit({ limit: 1, per: '1h' });
    const worker = await ProtocolWorker.register(node, { slots: 100 });
    await submit(node, 50);
    await expectStarts(worker, 1);
    // Setting the same rate once more, or another limit, opens nothing.
    await limit({ limit: 1, per: '1h' });
    await node.get('PATCH', '/v1/queues/default', { body: { weight: 3 } });
    await expectStarts(worker, 0);
    await limit({ limit: 10, per: '1s', burst: 1 });
    await expectStarts(worker, 1);
    clock.advance(100);
    await expectStarts(worker, 1);
    await limit(null);
    await expectStarts(worker, 47);
  });

  it('goes on when the clock is set back: of a queue, a tenant and a worker, and under the next leader', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const clock = new TestClock();
    const settings = { workerTimeout: '2d' };
    const first = await nodeForTest({ clock, database, settings });
    const rate = { limit: 1, per: '1s', burst: 3 } as const;
    await first.get('PATCH', '/v1/queues/default', { body: { rate }, tenant: 'a' });
    await first.get('POST', '/v1/tenants', { body: { id: 'b', rate } });
    const workers = [
      await ProtocolWorker.register(first, { slots: 100 }, 'a'),
      await ProtocolWorker.register(first, { slots: 100 }, 'b'),
      await ProtocolWorker.register(first, { slots: 100, rate }, 'c'),
    ];
    for (const tenant of ['a', 'b', 'c']) await submit(first, 50, {}, tenant);
    // Long enough ago to be due whatever the clock says afterwards.
    clock.advance(3_600_000);
    const expectEach = async (counts: readonly number[]) => {
      for (const [i, worker] of workers.entries()) await expectStarts(worker, counts[i]!);
    };
    await expectEach([3, 3, 3]);
    clock.setBack(600_000);
    clock.advance(1_000);
    await expectEach([1, 1, 1]);
    clock.advance(1_000);
    await expectEach([1, 1, 1]);

    clock.setBack(600_000);
    await first.node.stop();
    await nodeForTest({ clock, database, settings: { ...settings, port: first.node.port } });
    for (const worker of workers) {
      const { epoch } = await worker.heartbeat();
      await worker.heartbeat(undefined, epoch);
    }
    clock.advance(1_000);
    await expectEach([1, 1, 2]);
    clock.advance(1_000);
    await expectEach([1, 1, 1]);
  });

  it('does not count a job that expired or was cancelled before it could start', async () => {
    const { clock, node } = await nodeInStillTime();
    await node.get('PATCH', '/v1/queues/default', { body: { rate: { limit: 1, per: '1h', burst: 1 } } });
    const startBefore = new Date(clock.now() + 1_000).toISOString();
    await submit(node, 5, { startBefore, priority: 9 });
    const cancelled = await node.submit({ task: 'work', priority: 8 });
    const { id } = await node.submit({ task: 'work', priority: 1 });
    await node.get('POST', `/v1/jobs/${cancelled.id}/cancel`);
    clock.advance(2_000);
    const worker = await ProtocolWorker.register(node, { slots: 10 });
    expect(await worker.claimOne()).toMatchObject({ jobId: id });
    await worker.claimNothing();
  });
});

describe('a job that waits for a rate', () => {
  it('says whose rate it is, and for how long', async () => {
    const { clock, node } = await nodeInStillTime();
    const why = async (tenant: string) => {
      const { id } = await node.submit({ task: 'work' }, tenant);
      return node.get('GET', `/v1/jobs/${id}/why`, { tenant });
    };
    const rate = { limit: 2, per: '1h', burst: 1 } as const;
    await node.get('PATCH', '/v1/queues/default', { body: { rate }, tenant: 'a' });
    await node.get('POST', '/v1/tenants', { body: { id: 'b', rate } });
    const workers = await Promise.all([
      ProtocolWorker.register(node, {}, 'a'),
      ProtocolWorker.register(node, {}, 'b'),
      ProtocolWorker.register(node, { rate }, 'c'),
    ]);
    for (const [i, tenant] of ['a', 'b', 'c'].entries()) {
      await node.submit({ task: 'work' }, tenant);
      await workers[i]!.claimOne();
    }
    clock.advance(60_000);
    const opensInMs = 30 * 60_000 - 60_000;
    const figures = { limit: 2, per: '1h', burst: 1, opensInMs };
    expect(await why('a')).toMatchObject({
      gate: 'rate',
      detail: expect.stringMatching(/^Queue default .* 2 jobs in 1h/),
      figures,
    });
    expect(await why('b')).toMatchObject({
      gate: 'rate',
      detail: expect.stringMatching(/^Tenant b .* 2 jobs in 1h/),
      figures,
    });
    expect(await why('c')).toMatchObject({
      gate: 'rate',
      detail: expect.stringContaining('workers'),
      figures: { fittingWorkers: 1, freeSlots: 9, opensInMs },
    });
  });
});

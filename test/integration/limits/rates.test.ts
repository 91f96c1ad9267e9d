import { describe, expect, it } from 'vitest';
import type { Rate } from '../../../src/core/rate.js';
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

/** How many jobs start now; claims until nothing more comes. */
async function startsNow(worker: ProtocolWorker): Promise<number> {
  let count = 0;
  for (;;) {
    const jobs = await worker.claim(100, count === 0 ? '100ms' : '50ms');
    if (jobs.length === 0) return count;
    count += jobs.length;
  }
}

/** Moves time in uneven steps and checks every span: at most `burst + limit × t / per` starts, and nearly so many. */
async function expectRate(clock: TestClock, worker: ProtocolWorker, { limit, perMs, burst }: Rate) {
  const starts: { readonly at: number; readonly count: number }[] = [];
  const begin = clock.now();
  for (const step of [0, 40, 100, 10, 350, 100, 1, 99, 700, 25, 50]) {
    clock.advance(step);
    starts.push({ at: clock.now(), count: await startsNow(worker) });
  }
  for (const from of starts) {
    for (const to of starts) {
      if (to.at < from.at) continue;
      const inSpan = starts.filter(({ at }) => at >= from.at && at <= to.at);
      const sum = inSpan.reduce((total, { count }) => total + count, 0);
      expect(sum).toBeLessThanOrEqual(burst + (limit * (to.at - from.at)) / perMs);
    }
  }
  const all = starts.reduce((total, { count }) => total + count, 0);
  // Whatever the longest step let through beyond the burst is not made up for.
  const longest = Math.max(0, (limit * 700) / perMs - burst) + Math.max(0, (limit * 350) / perMs - burst);
  expect(all).toBeGreaterThanOrEqual(Math.floor((limit * (clock.now() - begin)) / perMs - longest));
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
    await expectRate(clock, worker, { limit: 10, perMs: 1_000, burst: 3 });
    expect(await startsNow(other)).toBe(20);
  });

  it('of a tenant is kept to over all its queues and workers, and holds up no other tenant', async () => {
    const { clock, node } = await nodeInStillTime();
    await node.get('POST', '/v1/tenants', { body: { id: 'acme', rate: { limit: 10, per: '1s', burst: 2 } } });
    const registration = { slots: 100, queues: ['*'], shared: true };
    const worker = await ProtocolWorker.register(node, registration);
    for (const queue of ['a', 'b', 'c']) await submit(node, 30, { queue }, 'acme');
    await expectRate(clock, worker, { limit: 10, perMs: 1_000, burst: 2 });
    await submit(node, 7, {}, 'other');
    expect(await startsNow(worker)).toBe(7);
  });

  it('of a worker is kept to by it alone', async () => {
    const { clock, node } = await nodeInStillTime();
    const slow = await ProtocolWorker.register(node, {
      slots: 100,
      rate: { limit: 10, per: '1s', burst: 2 },
    });
    await submit(node, 100);
    await expectRate(clock, slow, { limit: 10, perMs: 1_000, burst: 2 });
    const fast = await ProtocolWorker.register(node, { slots: 100 });
    expect(await startsNow(fast)).toBeGreaterThan(50);
  });

  it('that is changed applies at once; one that is taken away holds up nothing more', async () => {
    const { clock, node } = await nodeInStillTime();
    const limit = (rate: unknown) => node.get('PATCH', '/v1/queues/default', { body: { rate } });
    await limit({ limit: 1, per: '1h' });
    const worker = await ProtocolWorker.register(node, { slots: 100 });
    await submit(node, 50);
    expect(await startsNow(worker)).toBe(1);
    // Setting the same rate once more, or another limit, opens nothing.
    await limit({ limit: 1, per: '1h' });
    await node.get('PATCH', '/v1/queues/default', { body: { weight: 3 } });
    expect(await startsNow(worker)).toBe(0);
    await limit({ limit: 10, per: '1s', burst: 1 });
    expect(await startsNow(worker)).toBe(1);
    clock.advance(100);
    expect(await startsNow(worker)).toBe(1);
    await limit(null);
    expect(await startsNow(worker)).toBe(47);
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
    const rate = { limit: 2, per: '1h', burst: 1 };
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

import { afterAll, beforeAll, expect, it } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { Assignment, QueueView } from '../../../src/core/wire.js';
import { Happening } from '../../happening.js';
import { type ApiUser, TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

/** One node; each test has a tenant of its own. */
let shared: TestNode;

beforeAll(async () => {
  shared = await TestNode.start();
});
afterAll(() => shared.stop());

function limit(node: ApiUser, queue: string, change: Record<string, unknown>): Promise<QueueView> {
  return node.get('PATCH', `/v1/queues/${queue}`, { body: change });
}

function bulk(node: ApiUser, jobs: readonly Record<string, unknown>[]): Promise<{ ids: string[] }> {
  return node.get('POST', '/v1/jobs/bulk', { body: { jobs } });
}

/** Handlers that note how many of them run at once, in all and by what they are given. */
class Crowd {
  readonly most = new Map<string, number>();
  readonly ended = new Happening<string>();
  private readonly now = new Map<string, number>();

  readonly handle = async (group: string): Promise<void> => {
    for (const each of [group, 'all']) {
      const count = (this.now.get(each) ?? 0) + 1;
      this.now.set(each, count);
      this.most.set(each, Math.max(this.most.get(each) ?? 0, count));
    }
    // Others get their chance to start meanwhile, if anything lets them.
    await new Promise((resolve) => setTimeout(resolve, 2));
    for (const each of [group, 'all']) this.now.set(each, this.now.get(each)! - 1);
    this.ended.happen(group);
  };
}

it('never more jobs of a queue run at once than its limit says, however many workers there are', async () => {
  const node = shared.newTenant();
  const limited = await node.connect().limitQueue('narrow', { concurrency: 3 });
  expect(limited).toMatchObject({ name: 'narrow', concurrency: 3, keyConcurrency: 1, weight: 1 });
  const crowd = new Crowd();
  const tasks = [task('work', crowd.handle)];
  for (let i = 0; i < 3; i++) await node.work(tasks, { slots: 10, queues: ['narrow', 'wide'] });
  await bulk(node, [
    ...Array.from({ length: 120 }, () => ({ task: 'work', queue: 'narrow', payload: 'narrow' })),
    ...Array.from({ length: 120 }, () => ({ task: 'work', queue: 'wide', payload: 'wide' })),
  ]);
  await crowd.ended.times(240);
  expect(crowd.most.get('narrow')).toBe(3);
  expect(crowd.most.get('wide')).toBeGreaterThan(3);
});

it('one job of a key runs at a time, whatever its task; keys of other queues are other keys', async () => {
  const node = shared.newTenant();
  await limit(node, 'pairs', { keyConcurrency: 2 });
  const crowd = new Crowd();
  await node.work([task('one', crowd.handle), task('two', crowd.handle)], {
    slots: 30,
    queues: ['default', 'pairs'],
  });
  const jobs = (queue: string, key: string, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      ...{ task: i % 2 ? 'one' : 'two', queue, concurrencyKey: key, payload: `${queue}/${key}` },
      priority: 1 + (i % 9),
    }));
  await bulk(node, [
    ...jobs('default', 'a', 40),
    ...jobs('default', 'b', 40),
    ...jobs('pairs', 'a', 40),
    ...Array.from({ length: 40 }, () => ({ task: 'one', payload: 'no key' })),
  ]);
  await crowd.ended.times(160);
  const { all, 'no key': free, ...keyed } = Object.fromEntries(crowd.most);
  expect(keyed).toEqual({ 'default/a': 1, 'default/b': 1, 'pairs/a': 2 });
  expect(Math.max(free!, all! - 4)).toBeGreaterThan(1);
});

it('jobs that are submitted one by one while workers wait keep to the limits like any others', async () => {
  const node = shared.newTenant();
  await limit(node, 'narrow', { concurrency: 2 });
  const crowd = new Crowd();
  const queues = ['narrow', 'default'];
  for (let i = 0; i < 2; i++) await node.work([task('work', crowd.handle)], { slots: 10, queues });
  await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      i % 2
        ? node.submit({ task: 'work', queue: 'narrow', payload: 'narrow' })
        : node.submit({ task: 'work', concurrencyKey: 'k', payload: 'keyed' }),
    ),
  );
  await crowd.ended.times(40);
  expect(crowd.most.get('narrow')).toBeLessThanOrEqual(2);
  expect(crowd.most.get('keyed')).toBe(1);
});

it('a job that waits for a limit of its queue says so', async () => {
  const node = shared.newTenant();
  await limit(node, 'default', { concurrency: 1 });
  const worker = await ProtocolWorker.register(node);
  await node.submit({ task: 'work' });
  await worker.claimOne();
  const { id } = await node.submit({ task: 'work' });
  expect(await node.get('GET', `/v1/jobs/${id}/why`)).toMatchObject({
    gate: 'limit',
    detail: 'Queue default has as many jobs running as its limit allows.',
    figures: { limit: 1, running: 1 },
  });
});

it('a job that is tried again takes its key like any other', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { slots: 5 });
  const submission = { task: 'work', concurrencyKey: 'k', retry: { backoff: { base: '1ms' } } };
  const first = await node.submit(submission);
  const second = await node.submit(submission);
  expect(await worker.claimOne()).toMatchObject({ jobId: first.id });
  await worker.claimNothing();
  await worker.fail({ jobId: first.id, fence: 1 });
  const next = await worker.claimOne();
  await worker.claimNothing();
  await worker.succeed(next);
  const last = await worker.claimOne();
  expect([next.jobId, last.jobId].sort()).toEqual([first.id, second.id].sort());
  await worker.claimNothing();
});

it('20,000 jobs that wait for one key delay nobody, and are all done in their order', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { slots: 4, queues: ['default', 'quiet'] });
  const keyed = await node.submit({ task: 'work', concurrencyKey: 'busy', priority: 9 });
  const held = await worker.claimOne();
  expect(held.jobId).toBe(keyed.id);
  const waiting: string[] = [];
  for (let part = 0; part < 2; part++) {
    const jobs = Array.from({ length: 10_000 }, () => ({
      ...{ task: 'work', concurrencyKey: 'busy', priority: 9 },
    }));
    waiting.push(...(await bulk(node, jobs)).ids);
  }
  // A job of another key, one without any, and one in another queue come after them all and with less priority.
  const others = await Promise.all([
    node.submit({ task: 'work', concurrencyKey: 'idle', priority: 1 }),
    node.submit({ task: 'work', priority: 1 }),
    node.submit({ task: 'work', queue: 'quiet', priority: 1 }),
  ]);
  const came: Assignment[] = [];
  while (came.length < 3) came.push(await worker.claimOne());
  expect(came.map((job) => job.jobId).sort()).toEqual(others.map((job) => job.id).sort());
  expect(await node.get('GET', `/v1/jobs/${waiting.at(-1)}/why`)).toMatchObject({
    gate: 'limit',
    figures: { key: 'busy', limit: 1, running: 1 },
  });
  let next: Assignment = held;
  for (let i = 0; i < 50; i++) {
    await worker.succeed(next);
    next = await worker.claimOne();
    expect(next.jobId).toBe(waiting[i]);
  }
});

it('a limit that changes while jobs run applies from the next start on; what runs goes on', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { slots: 50 });
  await bulk(
    node,
    Array.from({ length: 20 }, () => ({ task: 'work' })),
  );
  const running = [...(await worker.claim(5))];
  expect(running).toHaveLength(5);
  expect(await limit(node, 'default', { concurrency: 3 })).toMatchObject({ running: 5, concurrency: 3 });
  for (let ended = 0; ended < 2; ended++) {
    await worker.claimNothing();
    await worker.succeed(running.pop()!);
  }
  await worker.claimNothing();
  await worker.succeed(running.pop()!);
  expect(await worker.claim(10)).toHaveLength(1);
  await limit(node, 'default', { concurrency: 6 });
  expect(await worker.claim(10)).toHaveLength(3);
  await worker.claimNothing();
  expect(await limit(node, 'default', { concurrency: null })).toMatchObject({ concurrency: null });
  expect(await worker.claim(50)).toHaveLength(11);
});

it('changes of different limits at the same time all count', async () => {
  const node = shared.newTenant();
  const changes = [
    { concurrency: 7 },
    { weight: 5 },
    { keyConcurrency: 4 },
    { rate: { limit: 9, per: '1s', burst: 2 } },
  ];
  await Promise.all(changes.map((change) => limit(node, 'q', change)));
  expect(await node.get('GET', '/v1/queues/q')).toMatchObject(Object.assign({}, ...changes));
  const id = `${node.tenant}-made`;
  await node.get('POST', '/v1/tenants', { body: { id } });
  const ofTenant = [{ weight: 3 }, { name: 'Made' }, { rate: { limit: 9, per: '1s', burst: 2 } }];
  await Promise.all(ofTenant.map((body) => node.get('PATCH', `/v1/tenants/${id}`, { body })));
  expect(await node.get('GET', `/v1/tenants/${id}`)).toMatchObject(Object.assign({}, ...ofTenant));
});

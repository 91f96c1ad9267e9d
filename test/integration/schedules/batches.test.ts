import { describe, expect, it } from 'vitest';
import type { NewKeyView } from '../../../src/core/access.js';
import type { Batch, BatchSummary } from '../../../src/core/batch.js';
import type { Assignment, Page } from '../../../src/core/wire.js';
import type { TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { ScheduleTester, SECOND } from './schedule-tester.js';

const PAIR = {
  jobs: [
    { task: 'work', payload: { part: 0 } },
    { task: 'work', payload: { part: 1 } },
  ],
};
const RUNS = { task: undefined, batch: PAIR, every: '10s' };

const batches = async (node: TestNode) =>
  (await node.get<Page<BatchSummary>>('GET', '/v1/batches?schedule=tick')).data.toReversed();
const ended = async (node: TestNode, { id }: { readonly id: string }) => {
  for (;;) {
    const batch = await node.get<Batch>('GET', `/v1/batches/${id}?wait=20s`);
    if (batch.endedAt !== null) return batch;
  }
};

/** Claims both members of a batch, which start together. */
async function claimPair(worker: ProtocolWorker): Promise<Assignment[]> {
  const claimed: Assignment[] = [];
  while (claimed.length < 2) claimed.push(...(await worker.claim(2)));
  return claimed;
}

/** A schedule every ten seconds whose first batch has started. */
async function running(overlap: string) {
  const tester = await ScheduleTester.start();
  const worker = await ProtocolWorker.register(tester.node);
  const { createdAt } = await tester.create({ ...RUNS, overlap });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  const first = await claimPair(worker);
  await tester.ledgerBecomes(since, ['+10s ran']);
  return { tester, worker, since, first };
}

async function finish(worker: ProtocolWorker, pair: readonly Assignment[]): Promise<void> {
  for (const job of pair) await worker.succeed(job);
}

it('an occurrence is the whole batch, which starts as soon as all have a place', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ ...RUNS, batch: { ...PAIR, onFailure: 'continue' } });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s pending']);
  const one = await ProtocolWorker.register(tester.node, { slots: 1 });
  await one.claimNothing();
  const other = await ProtocolWorker.register(tester.node, { slots: 1 });
  const jobs = await Promise.all([one.claimOne(), other.claimOne()]);
  expect(jobs.map(({ payload }) => payload)).toEqual(expect.arrayContaining([{ part: 0 }, { part: 1 }]));
  const [batch] = await batches(tester.node);
  expect(batch).toMatchObject({
    ...{ state: 'running', onFailure: 'continue', size: 2, schedule: 'tick' },
    scheduledAt: new Date(since + 10 * SECOND).toISOString(),
  });
  expect(await tester.ledger()).toMatchObject([
    { state: 'ran', batchId: batch!.id, jobId: expect.any(String) },
  ]);
  expect(await tester.schedule()).toMatchObject({ batch: PAIR, lastBatchId: batch!.id });
  await one.succeed(jobs[0]);
  await other.succeed(jobs[1]);
  expect((await ended(tester.node, batch!)).state).toBe('succeeded');
  expect((await tester.jobs()).map((job) => job.batch)).toEqual([batch!.id, batch!.id]);
});

it('one that finds no place in time fails, and the ledger says that it never started', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({
    ...RUNS,
    every: '60s',
    batch: { ...PAIR, startTimeout: '5s' },
  });
  const since = Date.parse(createdAt);
  tester.clock.advance(60 * SECOND);
  await tester.ledgerBecomes(since, ['+60s pending']);
  tester.clock.advance(6 * SECOND);
  await tester.ledgerBecomes(since, ['+60s missed not-started']);
});

describe('overlap is about whole batches', () => {
  it('skip: while a member runs', async () => {
    const { tester, worker, since, first } = await running('skip');
    await worker.succeed(first[0]!);
    tester.clock.advance(10 * SECOND);
    await tester.ledgerBecomes(since, ['+10s ran', '+20s skipped overlap']);
    await worker.succeed(first[1]!);
    await ended(tester.node, (await batches(tester.node))[0]!);
    tester.clock.advance(10 * SECOND);
    await claimPair(worker);
    await tester.ledgerBecomes(since, ['+10s ran', '+20s skipped overlap', '+30s ran']);
  });

  it('queue: the next starts when the whole one before has ended, also through a change of leader', async () => {
    const { tester, worker, since, first } = await running('queue');
    tester.clock.advance(10 * SECOND);
    await worker.heartbeat();
    await tester.ledgerBecomes(since, ['+10s ran', '+20s pending overlap']);
    tester.clock.advance(10 * SECOND);
    await worker.heartbeat();
    await tester.ledgerBecomes(since, ['+10s ran', '+20s pending overlap', '+30s pending overlap']);
    await finish(worker, first);
    const second = await claimPair(worker);
    expect(await batches(tester.node)).toHaveLength(2);
    await tester.stopFor(0);
    const next = await ProtocolWorker.register(tester.node);
    for (const job of second) next.held.set(job.jobId, job);
    await finish(next, second);
    // It may be matched to the slots of the worker of before, whose session the new leader knows.
    await until(async () => (await batches(tester.node)).at(-1)?.state === 'running');
    const made = await batches(tester.node);
    expect(made.map(({ scheduledAt }) => Date.parse(scheduledAt!) - since)).toEqual([10_000, 20_000, 30_000]);
  });

  it('cancel-previous: the whole batch is cancelled, and the new one is made', async () => {
    const { tester, worker, first } = await running('cancel-previous');
    tester.clock.advance(10 * SECOND);
    await until(async () => (await batches(tester.node)).length === 2);
    const [old] = await batches(tester.node);
    for (const { jobId, fence } of first) await worker.report({ jobId, fence, outcome: 'cancelled' });
    expect((await ended(tester.node, old!)).state).toBe('cancelled');
    await claimPair(worker);
  });

  it('cancel-previous: one that still waits ends at once', async () => {
    const tester = await ScheduleTester.start();
    await tester.create({ ...RUNS, overlap: 'cancel-previous' });
    tester.clock.advance(10 * SECOND);
    await until(async () => (await batches(tester.node)).length === 1);
    tester.clock.advance(10 * SECOND);
    await until(async () => (await batches(tester.node)).length === 2);
    expect((await batches(tester.node)).map(({ state }) => state)).toEqual(['cancelled', 'pending']);
  });

  it('allow: they run side by side', async () => {
    const { tester, worker } = await running('allow');
    tester.clock.advance(10 * SECOND);
    await claimPair(worker);
    expect((await batches(tester.node)).map(({ state }) => state)).toEqual(['running', 'running']);
  });
});

it('a batch that was fired before the leader was gone starts under the next, once', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ ...RUNS, catchUp: 'all' });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s pending']);
  await tester.stopFor(10 * SECOND);
  const worker = await ProtocolWorker.register(tester.node);
  await claimPair(worker);
  await claimPair(worker);
  await worker.claimNothing();
  expect(await batches(tester.node)).toHaveLength(2);
});

it('a backfill and a run by hand make whole batches', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ ...RUNS, every: '60s', catchUp: 'none' });
  const since = Date.parse(createdAt);
  await tester.stopFor(230 * SECOND);
  await tester.ledgerBecomes(since, ['+60s…+180s missed downtime (3)']);
  const range = { from: new Date(since).toISOString(), to: new Date(since + 230 * SECOND).toISOString() };
  expect(await tester.steer('backfill', range)).toMatchObject({ started: 3 });
  const byHand = await tester.node.ask<Batch>('POST', '/v1/schedules/tick/run');
  expect(byHand).toMatchObject({ status: 201, body: { state: 'pending', schedule: 'tick', size: 2 } });
  expect(byHand.headers.get('location')).toBe(`/v1/batches/${byHand.body.id}`);
  expect(await batches(tester.node)).toHaveLength(4);
});

it('what is wrong with a batch is told when the schedule is made', async () => {
  const tester = await ScheduleTester.start();
  const refused = async (more: object) => {
    const body = { name: 'x', ...RUNS, ...more };
    const answer = await tester.node.ask<{ errors: { pointer: string }[] }>('POST', '/v1/schedules', {
      body,
    });
    expect(answer.status).toBe(422);
    return answer.body.errors.map(({ pointer }) => pointer);
  };
  expect(await refused({ batch: { jobs: [] } })).toEqual(['/batch/jobs']);
  expect(await refused({ batch: { jobs: [{ task: 'work', key: 'k' }] } })).toEqual(['/batch/jobs/0/key']);
  const runAt = new Date().toISOString();
  expect(await refused({ batch: { jobs: [{ task: 'work', runAt }] } })).toEqual(['/batch/jobs/0/runAt']);
  expect(await refused({ batch: { jobs: [{ task: 'work', priority: 77 }] } })).toEqual([
    '/batch/jobs/0/priority',
  ]);
  expect(await refused({ payload: 1, task: 'work' })).toEqual(['/batch', '/payload']);
});

it('a restricted key reaches a schedule if it reaches every member of its batch', async () => {
  const tester = await ScheduleTester.start();
  await tester.create(RUNS);
  await tester.create({ ...RUNS, name: 'money', batch: { jobs: [...PAIR.jobs, { task: 'bill' }] } });
  const body = { name: 'part', scopes: ['read', 'submit', 'admin'], tenant: 'default', tasks: ['work'] };
  const { key } = await tester.node.get<NewKeyView>('POST', '/v1/keys', { body });
  const ask = (method: string, path: string, body?: unknown) =>
    tester.node.ask(method, path, { key, ...(body !== undefined && { body }) });
  expect((await ask('GET', '/v1/schedules/tick')).status).toBe(200);
  expect((await ask('GET', '/v1/schedules/money')).status).toBe(404);
  expect((await ask('POST', '/v1/schedules/money/run')).status).toBe(404);
  const bill = { jobs: [{ task: 'bill' }] };
  expect((await ask('POST', '/v1/schedules', { name: 'more', ...RUNS, batch: bill })).status).toBe(403);
  expect((await ask('PATCH', '/v1/schedules/tick', { batch: bill })).status).toBe(403);
});

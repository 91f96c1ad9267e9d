import { describe, expect, it, onTestFinished } from 'vitest';
import type { NewKeyView } from '../../../src/core/access.js';
import { task } from '../../../src/core/task.js';
import type { Assignment, BackfillAnswer, OccurrenceView, Page } from '../../../src/core/wire.js';
import type { ListedWorkflow, Workflow } from '../../../src/core/workflow.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { workflowEnd } from '../workflows/workflow-tester.js';
import { readLedger, ScheduleTester, SECOND } from './schedule-tester.js';

const CHAIN = {
  jobs: {
    a: { task: 'work', payload: { n: { $from: 'input.n' } } },
    b: { task: 'work', after: ['a'] },
  },
};
const RUNS = { task: undefined, workflow: 'chain', payload: { n: 7 }, every: '10s' };

const define = (node: TestNode, body: object = CHAIN) =>
  node.get('PUT', '/v1/workflow-definitions/chain', { body });
const workflows = async (node: TestNode) =>
  (await node.get<Page<ListedWorkflow>>('GET', '/v1/workflows?schedule=tick')).data.toReversed();

/** A schedule every ten seconds whose first workflow has begun. */
async function running(overlap: string) {
  const tester = await ScheduleTester.start();
  await define(tester.node);
  const worker = await ProtocolWorker.register(tester.node);
  const { createdAt } = await tester.create({ ...RUNS, overlap });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  const first = await worker.claimOne();
  await tester.ledgerBecomes(since, ['+10s ran']);
  return { tester, worker, since, first };
}

/** Lets a workflow whose first step runs end. */
async function finish(worker: ProtocolWorker, first: Assignment): Promise<void> {
  await worker.succeed(first);
  await worker.succeed(await worker.claimOne());
}

describe('an occurrence', () => {
  it('is the whole workflow: stored with its input, named by the ledger, found by its schedule', async () => {
    const { tester, worker, since, first } = await running('allow');
    expect(first.payload).toEqual({ n: 7 });
    const [run] = await workflows(tester.node);
    expect(run).toMatchObject({
      ...{ name: 'chain', definition: { name: 'chain', version: 1 }, schedule: 'tick', state: 'running' },
      scheduledAt: new Date(since + 10 * SECOND).toISOString(),
    });
    expect(await tester.ledger()).toMatchObject([
      { state: 'ran', workflowId: run!.id, jobId: first.jobId, lateBy: expect.any(Number) },
    ]);
    expect(await tester.schedule()).toMatchObject({ workflow: 'chain', lastWorkflowId: run!.id });
    await finish(worker, first);
    expect(await workflowEnd(tester.node, run!)).toMatchObject({ state: 'succeeded' });
    expect((await tester.jobs()).map(({ workflow }) => workflow)).toEqual([run!.id, run!.id]);
    // A new version holds from the next occurrence on.
    await define(tester.node, { jobs: { only: { task: 'work' } } });
    tester.clock.advance(10 * SECOND);
    await until(async () => (await workflows(tester.node)).length === 2);
    expect((await workflows(tester.node))[1]).toMatchObject({ definition: { version: 2 } });
  });

  it('is not made ahead of its time, and its delay counts from then', async () => {
    const tester = await ScheduleTester.start();
    await define(tester.node, { jobs: { a: { task: 'work', delay: '5s' }, w: { wait: '3s' } } });
    const worker = await ProtocolWorker.register(tester.node);
    const { createdAt } = await tester.create(RUNS);
    const since = Date.parse(createdAt);
    tester.clock.advance(9 * SECOND);
    await worker.claimNothing();
    expect(await workflows(tester.node)).toEqual([]);
    tester.clock.advance(1 * SECOND);
    await until(async () => (await workflows(tester.node)).length === 1);
    const [job] = await tester.jobs('pending');
    expect(Date.parse(job!.runAt)).toBe(since + 15 * SECOND);
    tester.clock.advance(5 * SECOND);
    await worker.succeed(await worker.claimOne());
    const [run] = await workflows(tester.node);
    expect((await workflowEnd(tester.node, run!)).state).toBe('succeeded');
    await tester.ledgerBecomes(since, ['+10s ran']);
  });

  it('catches up like one of a job, and a backfill and a run by hand make whole workflows', async () => {
    const tester = await ScheduleTester.start();
    await define(tester.node);
    const { createdAt } = await tester.create({ ...RUNS, every: '60s', catchUp: 'latest' });
    const since = Date.parse(createdAt);
    await tester.stopFor(300 * SECOND);
    await tester.ledgerBecomes(since, ['+60s…+240s missed downtime (4)', '+300s pending']);
    expect(await workflows(tester.node)).toHaveLength(1);
    const range = { from: new Date(since).toISOString(), to: new Date(since + 200 * SECOND).toISOString() };
    expect(await tester.steer('backfill', range)).toMatchObject({
      started: 3,
    } satisfies Partial<BackfillAnswer>);
    expect(await tester.steer('backfill', range)).toMatchObject({ started: 0 });
    expect(await workflows(tester.node)).toHaveLength(4);
    const byHand = await tester.node.ask<Workflow>('POST', '/v1/schedules/tick/run');
    expect(byHand).toMatchObject({
      status: 201,
      body: { name: 'chain', schedule: 'tick', scheduledAt: null, jobs: { a: {}, b: {} } },
    });
    expect(byHand.headers.get('location')).toBe(`/v1/workflows/${byHand.body.id}`);
    const last = (await tester.ledger('&to=2200-01-01T00:00:00Z')).find(({ reason }) => reason === 'manual');
    expect(last).toMatchObject({ workflowId: byHand.body.id });
  });

  it('with jitter starts later, and once', async () => {
    const tester = await ScheduleTester.start();
    await define(tester.node);
    await tester.create({ ...RUNS, every: '60s', jitter: '30s' });
    tester.clock.advance(60 * SECOND);
    tester.clock.advance(30 * SECOND);
    await until(async () => (await workflows(tester.node)).length === 1);
    tester.clock.advance(10 * SECOND);
    expect(await workflows(tester.node)).toHaveLength(1);
  });
});

describe('overlap is about whole workflows', () => {
  it('skip: while one goes on, although its first step has ended', async () => {
    const { tester, worker, since, first } = await running('skip');
    await worker.succeed(first);
    const second = await worker.claimOne();
    tester.clock.advance(10 * SECOND);
    await tester.ledgerBecomes(since, ['+10s ran', '+20s skipped overlap']);
    await worker.succeed(second);
    await workflowEnd(tester.node, (await workflows(tester.node))[0]!);
    tester.clock.advance(10 * SECOND);
    await worker.claimOne();
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
    await worker.succeed(first);
    const second = await worker.claimOne();
    expect(await workflows(tester.node)).toHaveLength(1);
    await tester.stopFor(0);
    const next = await ProtocolWorker.register(tester.node);
    next.held.set(second.jobId, second);
    await next.succeed(second);
    const third = await next.claimOne();
    const made = await workflows(tester.node);
    expect(made.map(({ scheduledAt }) => Date.parse(scheduledAt!) - since)).toEqual([10_000, 20_000]);
    await finish(next, third);
    await next.claimOne();
    expect(await workflows(tester.node)).toHaveLength(3);
    await tester.ledgerBecomes(since, ['+10s ran', '+20s ran', '+30s ran']);
  });

  it('cancel-previous: the whole workflow is cancelled, what runs is told to stop, and the new one is made', async () => {
    const { tester, worker, first } = await running('cancel-previous');
    tester.clock.advance(10 * SECOND);
    await until(async () => (await workflows(tester.node)).length === 2);
    const [old, fresh] = await workflows(tester.node);
    await until(async () => (await worker.heartbeat()).stop.length > 0);
    await worker.report({ jobId: first.jobId, fence: first.fence, outcome: 'cancelled' });
    expect((await workflowEnd(tester.node, old!)).state).toBe('cancelled');
    expect(fresh!.state).toBe('running');
  });

  it('allow: they run side by side', async () => {
    const { tester, worker } = await running('allow');
    tester.clock.advance(10 * SECOND);
    await worker.claimOne();
    expect((await workflows(tester.node)).map(({ state }) => state)).toEqual(['running', 'running']);
  });
});

describe('what cannot run', () => {
  it('is refused when the schedule is made', async () => {
    const tester = await ScheduleTester.start();
    await define(tester.node);
    const refused = async (more: object) => {
      const body = { name: 'x', ...RUNS, ...more };
      const answer = await tester.node.ask<{ errors: { pointer: string }[] }>('POST', '/v1/schedules', {
        body,
      });
      expect(answer.status).toBe(422);
      return answer.body.errors.map(({ pointer }) => pointer);
    };
    expect(await refused({ workflow: 'nothing' })).toEqual(['/workflow']);
    expect(await refused({ payload: {} })).toEqual(['/payload/n']);
    expect(await refused({ payload: undefined })).toEqual(['/payload']);
    expect(await refused({ task: 'work' })).toEqual(['/workflow']);
    expect(await refused({ queue: 'x', retry: { maxAttempts: 1 } })).toEqual(['/queue', '/retry']);
    const set = { managedBy: 'p', schedules: [{ name: 'x', ...RUNS, workflow: 'nothing' }] };
    expect(await tester.node.ask('PUT', '/v1/schedules', { body: set })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '/schedules/0/workflow' }] },
    });
  });

  it('is recorded with the reason when it fires, and can be filled in later', async () => {
    const tester = await ScheduleTester.start();
    await define(tester.node);
    const { createdAt } = await tester.create(RUNS);
    const since = Date.parse(createdAt);
    await tester.node.get('DELETE', '/v1/workflow-definitions/chain');
    tester.clock.advance(10 * SECOND);
    await tester.ledgerBecomes(since, ['+10s missed no-definition']);
    // Another input than the schedule has.
    await define(tester.node, { jobs: { a: { task: 'work', payload: { $from: 'input.m' } } } });
    tester.clock.advance(10 * SECOND);
    await until(async () => (await tester.ledger()).length === 2);
    expect((await tester.ledger())[1]).toMatchObject({
      state: 'missed',
      reason: expect.stringContaining('/input/m'),
    });
    expect(await workflows(tester.node)).toEqual([]);
    expect((await tester.node.ask('POST', '/v1/schedules/tick/run')).status).toBe(422);
    await define(tester.node);
    const range = { from: new Date(since).toISOString(), to: new Date(since + 20 * SECOND).toISOString() };
    expect(await tester.steer('backfill', range)).toMatchObject({ started: 2 });
    expect(await workflows(tester.node)).toHaveLength(2);
    await tester.ledgerBecomes(since, ['+10s pending backfill', '+20s pending backfill']);
  });

  it('leaves those that waited in the queue on record', async () => {
    const { tester, worker, since, first } = await running('queue');
    tester.clock.advance(10 * SECOND);
    await tester.ledgerBecomes(since, ['+10s ran', '+20s pending overlap']);
    await tester.node.get('DELETE', '/v1/workflow-definitions/chain');
    await finish(worker, first);
    await tester.ledgerBecomes(since, ['+10s ran', '+20s missed no-definition']);
  });
});

it('a schedule can change what it runs, and back', async () => {
  const tester = await ScheduleTester.start();
  await define(tester.node);
  const worker = await ProtocolWorker.register(tester.node);
  const { createdAt } = await tester.create({ every: '10s', overlap: 'skip' });
  const since = Date.parse(createdAt);
  await tester.change({ workflow: 'chain', payload: { n: 1 } });
  expect((await tester.schedule()).task).toBeUndefined();
  tester.clock.advance(10 * SECOND);
  const first = await worker.claimOne();
  await tester.change({ task: 'work' });
  // The workflow of before is what the next occurrence must not overlap.
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s skipped overlap']);
  await finish(worker, first);
  await workflowEnd(tester.node, (await workflows(tester.node))[0]!);
  tester.clock.advance(10 * SECOND);
  await worker.claimOne();
  await tester.ledgerBecomes(since, ['+10s ran', '+20s skipped overlap', '+30s ran']);
  expect((await tester.ledger())[2]!.workflowId).toBeUndefined();
});

it('a restricted key reaches a schedule if it reaches every step of its workflow', async () => {
  const tester = await ScheduleTester.start();
  await define(tester.node);
  await tester.create(RUNS);
  await tester.node.get('PUT', '/v1/workflow-definitions/money', {
    body: { jobs: { a: { task: 'work' }, b: { task: 'bill' } } },
  });
  await tester.create({ ...RUNS, name: 'money', workflow: 'money' });
  const body = { name: 'part', scopes: ['read', 'submit', 'admin'], tenant: 'default', tasks: ['work'] };
  const { key } = await tester.node.get<NewKeyView>('POST', '/v1/keys', { body });
  const ask = (method: string, path: string, body?: unknown) =>
    tester.node.ask(method, path, { key, ...(body !== undefined && { body }) });
  const list = (await ask('GET', '/v1/schedules')).body as unknown as Page<{ name: string }>;
  expect(list.data.map(({ name }) => name)).toEqual(['tick']);
  expect((await ask('GET', '/v1/schedules/money')).status).toBe(404);
  expect((await ask('POST', '/v1/schedules/money/run')).status).toBe(404);
  expect((await ask('POST', '/v1/schedules/tick/run')).status).toBe(201);
  expect((await ask('POST', '/v1/schedules', { name: 'more', ...RUNS, workflow: 'money' })).status).toBe(403);
  expect((await ask('PATCH', '/v1/schedules/tick', { workflow: 'money' })).status).toBe(403);
  expect((await ask('PATCH', '/v1/schedules/tick', { every: '20s' })).status).toBe(200);
});

it('schedules start the definitions of their own tenant', async () => {
  const tester = await ScheduleTester.start();
  await define(tester.node);
  await tester.node
    .get('POST', '/v1/tenants', { body: { id: 'other', name: 'Other' } })
    .catch(() => undefined);
  const body = { name: 'tick', ...RUNS };
  expect(await tester.node.ask('POST', '/v1/schedules', { body, tenant: 'other' })).toMatchObject({
    status: 422,
    body: { errors: [{ pointer: '/workflow' }] },
  });
});

it('workflows of ten thousand steps are fired as wholes, and hold up neither the term nor other schedules', async () => {
  const tester = await ScheduleTester.start();
  const jobs = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, i) => [`s${i}`, { task: 'large', ...(i > 0 && { after: ['s0'] }) }]),
  );
  await define(tester.node, { jobs });
  const epoch = () =>
    withClient(tester.database.url, async (db) => {
      const { rows } = await db.query<{ epoch: string }>('SELECT epoch FROM punctual.leases');
      return rows[0]!.epoch;
    });
  const before = await epoch();
  for (const name of ['tick', 'second', 'third']) await tester.create({ ...RUNS, name, payload: undefined });
  await tester.create({ name: 'small', task: 'work', every: '10s' });
  const worker = await ProtocolWorker.register(tester.node);
  tester.clock.advance(10 * SECOND);
  await worker.claimOne();
  await until(
    async () => (await tester.node.get<Page<ListedWorkflow>>('GET', '/v1/workflows')).data.length === 3,
  );
  const made = (await tester.node.get<Page<ListedWorkflow>>('GET', '/v1/workflows')).data;
  expect(made.map(({ progress }) => progress.steps)).toEqual([10_000, 10_000, 10_000]);
  expect(new Set(made.map(({ schedule }) => schedule)).size).toBe(3);
  expect(await epoch()).toBe(before);
}, 120_000);

it('a schedule of workflows through changes of leader has each occurrence exactly once', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const work = task('work', async (input: unknown) => input);
  let leader = await nodeForTest({ database });
  let standby = await nodeForTest({ database });
  await standby.work([work]);
  await define(leader);
  const body = { name: 'tick', ...RUNS, every: '1s' };
  const made = await leader.get<{ createdAt: string }>('POST', '/v1/schedules', { body });
  for (let change = 0; change < 5; change++) {
    const others: TestNode = await nodeForTest({ database });
    await leader.node.stop();
    await until(() => standby.node.leads() || others.node.leads());
    [leader, standby] = standby.node.leads() ? [standby, others] : [others, standby];
    await leader.work([work]);
    const rows = (await readLedger(leader, 'tick')).length;
    await until(async () => (await readLedger(leader, 'tick')).length > rows);
  }
  await leader.get('POST', '/v1/schedules/tick/pause');
  const isOver = (row: OccurrenceView) => row.state !== 'pending';
  await until(async () => (await readLedger(leader, 'tick')).every(isOver));
  const ran = (await readLedger(leader, 'tick')).filter((row) => row.reason !== 'paused');
  const since = Date.parse(made.createdAt);
  expect(ran.map((row) => (Date.parse(row.at) - since) / SECOND)).toEqual(ran.map((_, i) => i + 1));
  const runs = await workflows(leader);
  expect(runs.map(({ id }) => id).sort()).toEqual(ran.map(({ workflowId }) => workflowId).sort());
  expect(runs.map(({ scheduledAt }) => scheduledAt).sort()).toEqual(ran.map(({ at }) => at).sort());
  for (const run of runs) expect((await workflowEnd(leader, run)).state).toBe('succeeded');
}, 120_000);

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AuditView } from '../../../src/core/audit.js';
import { task } from '../../../src/core/task.js';
import type { Page, Why } from '../../../src/core/wire.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { createTestDatabase } from '../../database.js';
import { Door } from '../../happening.js';
import { nodeForTest, TestNode, type TestTenant } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { notingTask, statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

type User = Pick<TestTenant, 'ask' | 'get'>;

const steer = (user: User, { id }: { readonly id: string }, verb: string, body?: object) =>
  user.ask<Workflow & { code: string }>('POST', `/v1/workflows/${id}/${verb}`, body ? { body } : {});
const look = (user: User, { id }: { readonly id: string }) =>
  user.get<Workflow>('GET', `/v1/workflows/${id}`);
const whyOf = (user: User, id: string) => user.get<Why>('GET', `/v1/jobs/${id}/why`);

/** Resolves when every step of the workflow has been told what its hold or release means. */
async function swept(test: TestNode, { id }: { readonly id: string }): Promise<void> {
  await until(() =>
    withClient(test.database.url, async (client) => {
      const { rows } = await client.query('SELECT swept FROM punctual.workflows WHERE id = $1', [id]);
      return rows[0].swept === true;
    }),
  );
}

describe('a workflow on hold', () => {
  it('starts no step, live, delayed or blocked; what runs finishes and is counted; a release lets all go on', async () => {
    const user = node.newTenant();
    const worker = await ProtocolWorker.register(user, { tasks: ['note'] });
    const submitted = await submitWorkflow(user, {
      jobs: {
        runs: step('runs'),
        behind: step('behind', ['runs']),
        skipped: step('skipped', ['runs'], { runIf: 'any-failed' }),
        last: step('last', ['behind', 'late']),
        late: step('late', [], { delay: '400ms' }),
      } as never,
    });
    const running = await worker.claimOne();
    const { status, body } = await steer(user, submitted, 'hold');
    expect([status, body.held, body.state]).toEqual([200, true, 'running']);
    expect((await steer(user, submitted, 'hold')).body.code).toBe('WORKFLOW_HELD');
    await worker.succeed(running);
    // Its end is counted: one child is decided to run and stays where it is, the other one is skipped.
    await until(async () => statesOf(await look(user, submitted)).skipped === 'skipped');
    expect(await worker.claimSilently(5, '900ms')).toEqual([]);
    expect(statesOf(await look(user, submitted))).toEqual({
      ...{ runs: 'succeeded', behind: 'blocked', skipped: 'skipped', late: 'blocked', last: 'blocked' },
    });
    const { jobs } = submitted;
    expect(await whyOf(user, jobs.behind!.id)).toMatchObject({
      gate: 'hold',
      figures: { workflowHeld: true },
    });
    expect(await whyOf(user, jobs.late!.id)).toMatchObject({ gate: 'hold' });
    const last = await whyOf(user, jobs.last!.id);
    expect([last.gate, last.figures.workflowHeld]).toEqual(['parents', true]);
    expect(last.detail).toContain('on hold');

    const released = await steer(user, submitted, 'release');
    expect([released.status, released.body.held]).toEqual([200, false]);
    expect((await steer(user, submitted, 'release')).body.code).toBe('WORKFLOW_NOT_HELD');
    for (const _ of ['behind', 'late', 'last']) await worker.succeed(await worker.claimOne());
    expect(await workflowEnd(user, submitted)).toMatchObject({ state: 'succeeded', held: false });
    const behind = await user.job(jobs.behind!.id);
    expect(behind.lateBy).toBeLessThan(900);
    expect((await steer(user, submitted, 'hold')).body.code).toBe('WORKFLOW_ENDED');
    expect((await steer(user, submitted, 'release')).body.code).toBe('WORKFLOW_ENDED');
  });

  it('starts no further attempt of a step that fails meanwhile, and starts it after the release', async () => {
    const user = node.newTenant();
    const worker = await ProtocolWorker.register(user, { tasks: ['note'] });
    const retry = { maxAttempts: 3, backoff: { base: '20ms', factor: 1, max: '20ms', jitter: 0 } };
    const submitted = await submitWorkflow(user, { jobs: { a: { task: 'note', retry } } as never });
    const first = await worker.claimOne();
    await steer(user, submitted, 'hold');
    await swept(node, submitted);
    await worker.fail(first);
    expect(await worker.claimSilently(1, '300ms')).toEqual([]);
    expect(await whyOf(user, submitted.jobs.a!.id)).toMatchObject({ state: 'pending', gate: 'hold' });
    await steer(user, submitted, 'release');
    const second = await worker.claimOne();
    expect(second.attempt).toBe(2);
    await worker.succeed(second);
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
  });

  it('leaves a job on hold that somebody held by itself, before or while the workflow was held', async () => {
    const user = node.newTenant();
    const ran: string[] = [];
    const submitted = await submitWorkflow(user, {
      jobs: { a: step('a'), b: step('b'), c: step('c') } as never,
    });
    const { a, b, c } = submitted.jobs;
    await user.get('POST', `/v1/jobs/${a!.id}/hold`);
    await steer(user, submitted, 'hold');
    await swept(node, submitted);
    await user.get('POST', `/v1/jobs/${b!.id}/hold`);
    // Holding and releasing one job does not get around the workflow.
    await user.get('POST', `/v1/jobs/${c!.id}/hold`);
    await user.get('POST', `/v1/jobs/${c!.id}/release`);
    await user.work([notingTask(ran)]);
    expect(await whyOf(user, a!.id)).toMatchObject({ gate: 'hold', figures: { workflowHeld: true } });
    await steer(user, submitted, 'release');
    await user.ended(c!.id);
    await swept(node, submitted);
    expect(ran).toEqual(['c']);
    expect(statesOf(await look(user, submitted))).toEqual({ a: 'pending', b: 'pending', c: 'succeeded' });
    for (const job of [a!, b!]) await user.get('POST', `/v1/jobs/${job.id}/release`);
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
  });

  it('still ends waits for events and times, and keeps what they lead to', async () => {
    const user = node.newTenant();
    const ran: string[] = [];
    await user.work([notingTask(ran)]);
    const jobs = {
      paid: { wait: { event: 'paid' } },
      while: { wait: '50ms' },
      ship: step('ship', ['paid', 'while'], { payload: { name: 'ship', amount: { $from: 'paid.result' } } }),
    };
    const submitted = await submitWorkflow(user, { jobs: jobs as never });
    await steer(user, submitted, 'hold');
    await user.get('POST', `/v1/workflows/${submitted.id}/events`, { body: { event: 'paid', payload: 42 } });
    await until(async () => (await look(user, submitted)).progress.ended === 2);
    expect(statesOf(await look(user, submitted))).toEqual({
      paid: 'succeeded',
      while: 'succeeded',
      ship: 'blocked',
    });
    expect(ran).toEqual([]);
    await steer(user, submitted, 'release');
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    expect((await user.job(submitted.jobs.ship!.id)).payload).toEqual({ name: 'ship', amount: 42 });
  });

  it('can be cancelled: what waits is cancelled or skipped, and it ends', async () => {
    const user = node.newTenant();
    const submitted = await submitWorkflow(user, { jobs: { a: step('a'), b: step('b', ['a']) } as never });
    await steer(user, submitted, 'hold');
    await swept(node, submitted);
    await steer(user, submitted, 'cancel');
    const ended = await workflowEnd(user, submitted);
    expect(ended).toMatchObject({ state: 'cancelled', held: false });
    expect(statesOf(ended)).toEqual({ a: 'cancelled', b: 'skipped' });
  });

  it('keeps steps that are retried meanwhile from starting, also those that take results', async () => {
    const user = node.newTenant();
    const worker = await ProtocolWorker.register(user, { tasks: ['note'] });
    const jobs = {
      a: step('a'),
      b: step('b', ['a'], { payload: { name: 'b', of: { $from: 'a.result' } } }),
      c: step('c'),
      door: { wait: { event: 'never' } },
    };
    const submitted = await submitWorkflow(user, { jobs: jobs as never });
    for (const job of [await worker.claimOne(), await worker.claimOne()])
      await (job.jobId === submitted.jobs.a!.id ? worker.succeed(job, { is: 'a' }) : worker.fail(job));
    await worker.fail(await worker.claimOne());
    await until(async () => (await look(user, submitted)).progress.failed === 2);
    await steer(user, submitted, 'hold');
    const retried = await steer(user, submitted, 'retry');
    expect([retried.status, retried.body.held, retried.body.run]).toEqual([200, true, 2]);
    expect(await worker.claimSilently(5, '400ms')).toEqual([]);
    expect(statesOf(await look(user, submitted))).toMatchObject({ b: 'blocked', c: 'blocked' });
    await steer(user, submitted, 'release');
    const again = [await worker.claimOne(), await worker.claimOne()];
    expect(again.map(({ jobId }) => jobId).sort()).toEqual(
      [submitted.jobs.b!.id, submitted.jobs.c!.id].sort(),
    );
    expect(again.find(({ jobId }) => jobId === submitted.jobs.b!.id)!.payload).toEqual({
      name: 'b',
      of: { is: 'a' },
    });
  });

  it('starts an at-most-once step exactly once after its release', async () => {
    const user = node.newTenant();
    const worker = await ProtocolWorker.register(user, { tasks: ['note'] });
    const once = { task: 'note', delivery: 'at-most-once' };
    const submitted = await submitWorkflow(user, {
      jobs: { a: once, b: { ...once, after: ['a'] } } as never,
    });
    await steer(user, submitted, 'hold');
    expect(await worker.claimSilently(1, '200ms')).toEqual([]);
    for (const verb of ['release', 'hold', 'release']) await steer(user, submitted, verb);
    await worker.succeed(await worker.claimOne());
    await worker.succeed(await worker.claimOne());
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    for (const job of Object.values(submitted.jobs))
      expect((await user.job(job.id)).attempts).toHaveLength(1);
  });

  it('keeps steps from starting that a running step adds, with their delays', async () => {
    const user = node.newTenant();
    const worker = await ProtocolWorker.register(user, { tasks: ['note'] });
    const submitted = await submitWorkflow(user, {
      jobs: { a: step('a'), last: step('last', ['a']) } as never,
    });
    const { jobId, fence } = await worker.claimOne();
    await steer(user, submitted, 'hold');
    await swept(node, submitted);
    const jobs = { b: step('b'), late: step('late', [], { delay: '50ms' }) };
    await user.get('POST', `/v1/workflows/${submitted.id}/jobs`, { body: { by: { jobId, fence }, jobs } });
    await worker.succeed({ jobId, fence });
    await swept(node, submitted);
    expect(await worker.claimSilently(5, '400ms')).toEqual([]);
    await until(async () => (await look(user, submitted)).progress.ended === 1);
    expect(statesOf(await look(user, submitted))).toMatchObject({
      b: 'blocked',
      late: 'blocked',
      last: 'blocked',
    });
    await steer(user, submitted, 'release');
    for (const _ of ['b', 'late', 'last']) await worker.succeed(await worker.claimOne());
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
  });

  it('is audited, repeatable with an Idempotency-Key, and not found by others', async () => {
    const user = node.newTenant();
    const submitted = await submitWorkflow(user, { jobs: { a: step('a', [], { delay: '1h' }) } as never });
    const headers = { 'idempotency-key': 'hold-1' };
    const path = `/v1/workflows/${submitted.id}/hold`;
    const first = await user.ask<Workflow>('POST', path, { headers });
    const second = await user.ask<Workflow>('POST', path, { headers });
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body).toEqual(first.body);
    const audit = await node.get<Page<AuditView>>('GET', `/v1/audit?subject=${submitted.id}`);
    expect(audit.data.map(({ action, after }) => [action, after])).toEqual([
      ['workflow.hold', expect.objectContaining({ held: true })],
    ]);
    expect((await node.newTenant().ask('POST', path)).status).toBe(404);
  });
});

it('a large workflow is parked and let go whole, whatever is steered in between, and each step runs once', async () => {
  const test = await nodeForTest();
  const width = 1_500;
  const jobs: Record<string, object> = { first: step('first') };
  for (let i = 0; i < width; i++) jobs[`m${i}`] = step(`m${i}`, ['first']);
  jobs.last = step('last', Object.keys(jobs).slice(1), { runIf: 'all-finished' });
  const ran: string[] = [];
  const submitted = await submitWorkflow(test, { jobs: jobs as never });
  await test.work([notingTask(ran)], { slots: 50 });
  await until(() => ran.length > 100);
  await steer(test, submitted, 'hold');
  await until(async () => !Object.values(statesOf(await look(test, submitted))).includes('running'));
  const atHold = ran.length;
  await swept(test, submitted);
  await steer(test, submitted, 'release');
  await steer(test, submitted, 'hold');
  await swept(test, submitted);
  expect(atHold).toBeLessThan(width);
  const { progress } = await look(test, submitted);
  await steer(test, submitted, 'release');
  await steer(test, submitted, 'hold');
  await steer(test, submitted, 'release');
  const ended = await workflowEnd(test, submitted);
  expect(progress.ended).toBeGreaterThan(0);
  expect(ended).toMatchObject({ state: 'succeeded', progress: { ended: width + 2 } });
  expect(ran).toHaveLength(width + 2);
  expect(new Set(ran).size).toBe(width + 2);
}, 60_000);

it('a leader that was killed before it parked the steps of a workflow, or let them go, is taken over', async () => {
  const database = await createTestDatabase();
  const first = await nodeForTest({ database });
  const submitted = await submitWorkflow(first, {
    jobs: { a: step('a'), b: step('b', ['a']), late: step('late', [], { delay: '100ms' }) } as never,
  });
  await first.node.stop();
  // As the hold leaves it, with nobody to go over the steps.
  const run = (text: string) => withClient(database.url, (client) => client.query(text, [submitted.id]));
  await run('UPDATE punctual.workflows SET held = true, swept = false WHERE id = $1');
  const second = await nodeForTest({ database });
  const ran: string[] = [];
  await second.work([notingTask(ran)]);
  await swept(second, submitted);
  expect(statesOf(await look(second, submitted))).toEqual({ a: 'blocked', b: 'blocked', late: 'blocked' });
  await second.node.stop();
  await run('UPDATE punctual.workflows SET held = false, swept = false WHERE id = $1');
  const third = await nodeForTest({ database });
  expect(ran).toEqual([]);
  await third.work([notingTask(ran)]);
  expect((await workflowEnd(third, submitted)).state).toBe('succeeded');
  expect([...ran].sort()).toEqual(['a', 'b', 'late']);
});

it('no attempt is claimed between a hold and the release after it, however often that happens while others steer', async () => {
  const test = await nodeForTest();
  const random = randomFrom(42);
  const width = 400;
  const jobs: Record<string, object> = {};
  const retry = { maxAttempts: 10, backoff: { base: '5ms', factor: 1, max: '5ms', jitter: 0 } };
  for (let i = 0; i < width; i++) {
    const after =
      i === 0 ? [] : [...new Set([random(i), random(i)].filter((at) => at < i - 3))].map((at) => `s${at}`);
    jobs[`s${i}`] = step(`s${i}`, after, { retry, ...(random(10) === 0 && { delay: `${random(200)}ms` }) });
  }
  const flaky = task('note', {}, async ({ name }: { name: string }) => {
    if (random(10) === 0) throw new Error('flaky');
    return name;
  });
  await test.work([flaky], { slots: 8 });
  const submitted = await submitWorkflow(test, { jobs: jobs as never });
  const holds: { from: number; until: number }[] = [];
  for (let round = 0; round < 25; round++) {
    const { status } = await steer(test, submitted, 'hold');
    if (status !== 200) break;
    const from = Date.now();
    const chosen = submitted.jobs[`s${random(width)}`]!.id;
    // Whatever somebody does to a single job, it does not get around the hold.
    await test.ask('POST', `/v1/jobs/${chosen}/hold`);
    await test.ask('POST', `/v1/jobs/${chosen}/release`);
    if (random(3) === 0) await swept(test, submitted);
    holds.push({ from, until: Date.now() });
    await steer(test, submitted, 'release');
    if (random(2) === 0) await look(test, submitted);
  }
  const ended = await workflowEnd(test, submitted);
  expect(ended).toMatchObject({ state: 'succeeded', progress: { ended: width } });
  expect(holds.length).toBeGreaterThan(5);
  const claims = await withClient(test.database.url, (client) =>
    client.query(`
      SELECT claimed_at::float8 AS at FROM punctual.job_history UNION ALL
      SELECT (a ->> 'claimedAt')::float8 FROM punctual.job_history, unnest(earlier_attempts) a`),
  );
  // The clock of the database may differ by a millisecond or two.
  const isHeld = (at: number) => holds.some(({ from, until }) => at > from + 5 && at < until - 5);
  expect(claims.rows.filter(({ at }) => isHeld(at))).toEqual([]);
}, 60_000);

/** The same numbers in every run: below `n`. */
function randomFrom(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * n);
  };
}

it('a retry that comes before the last end is counted does not keep the workflow on hold', async () => {
  const user = node.newTenant();
  const door = new Door();
  let runs = 0;
  const flaky = task('note', { retry: { maxAttempts: 1 } }, async () => {
    runs += 1;
    if (runs > 1) return;
    await door.opened;
    throw new Error('the first time');
  });
  await user.work([flaky]);
  const submitted = await submitWorkflow(user, { jobs: { a: step('a') } as never });
  await until(async () => runs === 1);
  await steer(user, submitted, 'hold');
  await swept(node, submitted);
  // The retry waits behind something else, and the end is written meanwhile and not counted.
  const { workflows } = await node.node.context.shards[0]!.leader();
  const blocker = new Door();
  const blocked = workflows.executor.alone(() => blocker.opened);
  const retrying = steer(user, submitted, 'retry');
  door.open();
  await until(async () => (await user.job(submitted.jobs.a!.id)).state === 'failed');
  blocker.open();
  await blocked;
  expect((await retrying).status).toBe(200);
  expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
});

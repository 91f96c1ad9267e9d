import { afterAll, beforeAll, expect, it } from 'vitest';
import { JobFailedError } from '../../src/client/job-handle.js';
import type { Job } from '../../src/core/job.js';
import { PermanentError, task } from '../../src/core/task.js';
import type { RedriveAnswer, StatsView } from '../../src/core/wire.js';
import { Happening } from '../happening.js';
import { type ApiUser, nodeForTest, TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

/** One node and one clock for all; each test has a tenant of its own, and time only ever moves forward. */
let shared: TestNode;
const clock = new TestClock();

beforeAll(async () => {
  // Workers must not be taken for dead when a test moves the clock.
  shared = await TestNode.start({ clock, settings: { workerTimeout: '2d' } });
});
afterAll(() => shared.stop());

/** Resolves when the job waits for its next attempt. */
async function waitsAgain(node: ApiUser, id: string, attempts: number): Promise<Job> {
  await expect
    .poll(async () => {
      const job = await node.job(id);
      return [job.state, job.attempt];
    })
    .toEqual(['pending', attempts]);
  return node.job(id);
}

it('a job is submitted, run and kept in history with all that happened', async () => {
  const node = shared.newTenant();
  const greet = task('greet', async (input: { name: string }, ctx) => ({
    text: `Hello ${input.name}`,
    fence: ctx.fence,
  }));
  const worker = await node.work([greet], { name: 'greeter' });
  const handle = await node.connect().submit(greet, { name: 'Ada' }, { priority: 7, queue: 'default' });
  const result: { text: string; fence: number } = await handle.result();
  expect(result).toEqual({ text: 'Hello Ada', fence: 1 });

  const job = await node.job(handle.id);
  const { workerId } = worker.status();
  expect(job).toMatchObject({
    id: handle.id,
    tenant: node.tenant,
    task: 'greet',
    target: { type: 'handler', name: 'greet' },
    queue: 'default',
    state: 'succeeded',
    priority: 7,
    payload: { name: 'Ada' },
    result: { text: 'Hello Ada', fence: 1 },
    error: null,
    key: null,
    hold: false,
    createdBy: 'tester',
    attempt: 1,
    maxAttempts: 4,
    fence: 1,
    worker: workerId,
    timeout: '20m',
    delivery: 'at-least-once',
    retry: {
      maxAttempts: 4,
      backoff: { base: '2s', factor: 2, max: '10m', jitter: 0.1 },
      onWorkerLost: { maxAttempts: 3 },
    },
    dependsOn: [],
    dependents: [],
    ancestors: [],
    descendants: [],
    attempts: [{ attempt: 1, fence: 1, worker: workerId, outcome: 'succeeded', error: null }],
  });
  const moments = [job.createdAt, job.runAt, job.attempts[0]!.claimedAt, job.finishedAt!];
  expect(moments).toEqual([...moments].sort());
  expect(job.lateBy).toBeGreaterThanOrEqual(0);
  expect((await node.ask('GET', `/v1/jobs/${job.id}`)).body).toEqual(job);
});

it('the counts of all that happened add up', async () => {
  const node = await nodeForTest();
  const half = task('half', { retry: { maxAttempts: 1 } }, (n: number) => {
    if (n % 2) throw new Error('odd');
    return n / 2;
  });
  await node.work([half]);
  const jobs = await node.connect().submitMany(half, [1, 2, 3, 4, 5]);
  await Promise.all(jobs.map((job) => node.ended(job.id)));
  expect(await node.get<StatsView>('GET', '/v1/stats')).toMatchObject({
    leaderElections: 1,
    jobsSubmitted: 5,
    jobsAssigned: 5,
    jobsCompleted: 2,
    jobsFailed: 3,
    jobsRetried: 0,
    lateness: { count: 5 },
  });
  const metrics = await node.get<string>('GET', '/metrics');
  expect(metrics).toMatch(/punctual_jobs_completed_total\S* 2/);
});

it('a failing job is tried again after 2, 4 and 8 seconds and is then a dead letter', async () => {
  const node = shared.newTenant();
  const started = new Happening<number>();
  const flaky = task('flaky', { retry: { backoff: { jitter: 0 } } }, (_: null, ctx) => {
    started.happen(ctx.attempt);
    throw Object.assign(new Error(`attempt ${ctx.attempt} failed`), { code: 'FLAKY' });
  });
  await node.work([flaky]);
  const { id } = await node.connect().submit(flaky, null);
  let expectedRunAt = clock.now();
  for (const [index, pauseMs] of [2_000, 4_000, 8_000].entries()) {
    const waiting = await waitsAgain(node, id, index + 1);
    expectedRunAt += pauseMs;
    expect(Date.parse(waiting.runAt)).toBe(expectedRunAt);
    clock.advance(pauseMs - 1);
    expect(await node.get('GET', `/v1/jobs/${id}/why`)).toMatchObject({
      gate: 'due-time',
      figures: { dueInMs: 1 },
    });
    expect(started.all).toHaveLength(index + 1);
    clock.advance(1);
    await started.times(index + 2);
  }
  const job = await node.ended(id);
  expect(job).toMatchObject({
    state: 'failed',
    attempt: 4,
    fence: 4,
    result: null,
    error: { message: 'attempt 4 failed', code: 'FLAKY', stack: expect.stringContaining('job-life') },
  });
  expect(job.attempts.map(({ attempt, fence, outcome }) => [attempt, fence, outcome])).toEqual([
    [1, 1, 'failed'],
    [2, 2, 'failed'],
    [3, 3, 'failed'],
    [4, 4, 'failed'],
  ]);
  expect(job.attempts.map((attempt) => attempt.error?.message)).toEqual([
    'attempt 1 failed',
    'attempt 2 failed',
    'attempt 3 failed',
    'attempt 4 failed',
  ]);
  expect(started.all).toEqual([1, 2, 3, 4]);
});

it('jitter keeps the pause within its share', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { slots: 50 });
  const bodies = Array.from({ length: 50 }, () => ({
    task: 'work',
    retry: { backoff: { base: '10s', jitter: 0.5 } },
  }));
  await node.get('POST', '/v1/jobs/bulk', { body: { jobs: bodies } });
  const jobs = await worker.claim(50);
  await worker.report(
    ...jobs.map(({ jobId, fence }) => ({
      jobId,
      fence,
      outcome: 'failed' as const,
      error: { message: 'x' },
    })),
  );
  const page = await node.get<{ data: Job[] }>('GET', '/v1/jobs?state=pending');
  const pauses = page.data.map((job) => Date.parse(job.runAt) - clock.now());
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(5_000);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(15_000);
  expect(new Set(pauses).size).toBeGreaterThan(10);
});

it('a failure that trying again cannot mend ends the job at once', async () => {
  const node = shared.newTenant();
  const gone = task('gone', () => {
    throw new PermanentError('it does not exist', { code: 'GONE' });
  });
  const marked = task('marked', () => {
    throw Object.assign(new Error('never mind'), { retryable: false });
  });
  await node.work([gone, marked]);
  const punctual = node.connect();
  for (const [submitted, error] of [
    [await punctual.submit(gone), { message: 'it does not exist', code: 'GONE' }],
    [await punctual.submit(marked), { message: 'never mind' }],
  ] as const) {
    const rejection = await submitted.result().catch((thrown: unknown) => thrown);
    expect(rejection).toBeInstanceOf(JobFailedError);
    expect((rejection as JobFailedError).job).toMatchObject({ state: 'failed', attempt: 1, error });
  }
});

it('a dead letter that is retried keeps its attempts and goes on with growing fences', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', retry: { maxAttempts: 1 } });
  expect(await worker.claimOne()).toMatchObject({ jobId: id, attempt: 1, fence: 1 });
  await worker.fail({ jobId: id, fence: 1 }, 'first');
  expect(await node.job(id)).toMatchObject({ state: 'failed' });

  const retried = await node.get<Job>('POST', `/v1/jobs/${id}/retry`);
  expect(retried).toMatchObject({ id, state: 'pending', attempt: 1, error: null, finishedAt: null });
  const second = await worker.claimOne();
  expect(second).toMatchObject({ jobId: id, attempt: 2, fence: 2 });
  expect(await worker.succeed({ jobId: id, fence: 1 })).toMatchObject({ stale: [id] });
  expect(await worker.succeed(second, 'done')).toMatchObject({ accepted: [id] });
  expect(await node.job(id)).toMatchObject({
    state: 'succeeded',
    result: 'done',
    fence: 2,
    attempts: [
      { fence: 1, outcome: 'failed', error: { message: 'first' } },
      { fence: 2, outcome: 'succeeded', error: null },
    ],
  });
});

it('a retried dead letter has its full number of attempts again', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', retry: { maxAttempts: 2, backoff: { jitter: 0 } } });
  for (const fence of [1, 2]) {
    await worker.fail(await worker.claimOne());
    clock.advance(2_000);
    expect(await node.job(id)).toMatchObject({ fence });
  }
  await node.get('POST', `/v1/jobs/${id}/retry`);
  await worker.fail(await worker.claimOne());
  expect(await node.job(id)).toMatchObject({ state: 'pending', attempt: 3 });
});

it('what has not failed cannot be retried', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node);
  const retry = async (id: string) => {
    const { status, body } = await node.ask('POST', `/v1/jobs/${id}/retry`);
    return [status, body.code];
  };
  const waiting = await node.submit({ task: 'work' });
  expect(await retry(waiting.id)).toEqual([409, 'JOB_NOT_ENDED']);
  await worker.claimOne();
  expect(await retry(waiting.id)).toEqual([409, 'JOB_NOT_ENDED']);
  await worker.succeed({ jobId: waiting.id, fence: 1 });
  expect(await retry(waiting.id)).toEqual([409, 'JOB_ENDED']);
  const once = await node.submit({ task: 'work', delivery: 'at-most-once' });
  await worker.fail(await worker.claimOne());
  expect(await retry(once.id)).toEqual([409, 'AT_MOST_ONCE']);
});

it('dead letters are sent round again by filter, after a dry run that changes nothing', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { tasks: ['a', 'b'], queues: ['default', 'other'] });
  const once = { retry: { maxAttempts: 1 } };
  await node.get('POST', '/v1/jobs/bulk', {
    body: {
      jobs: [
        { task: 'a', ...once },
        { task: 'a', queue: 'other', ...once },
        { task: 'b', ...once },
        { task: 'b', delivery: 'at-most-once' },
      ],
    },
  });
  for (let i = 0; i < 4; i++) await worker.fail(await worker.claimOne());
  const redrive = (body: unknown) => node.get<RedriveAnswer>('POST', '/v1/jobs/redrive', { body });
  const failed = async () => (await node.get<{ data: Job[] }>('GET', '/v1/jobs?state=failed')).data.length;

  expect(await redrive({ dryRun: true })).toEqual({
    ...{ matched: 3, changed: 0, redriven: 0, dryRun: true, more: false, next: null, refused: [] },
  });
  expect(await failed()).toBe(4);
  expect(await redrive({ task: 'a', queue: 'other' })).toMatchObject({ matched: 1, redriven: 1 });
  expect(await worker.claimOne()).toMatchObject({ task: 'a', attempt: 2, fence: 2 });
  expect(await redrive({ task: 'nothing' })).toMatchObject({ matched: 0, redriven: 0 });
  for (const body of [undefined, {}, { dryRun: false }, { all: false }, { all: true, task: 'a' }]) {
    const refused = await node.ask<{ errors: unknown }>('POST', '/v1/jobs/redrive', body ? { body } : {});
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      [expect.objectContaining({ pointer: '/all' })],
    ]);
  }
  expect(await redrive({ all: true })).toMatchObject({ matched: 2, redriven: 2, dryRun: false });
  expect(await worker.claim(10)).toHaveLength(2);
  expect(await failed()).toBe(1);
});

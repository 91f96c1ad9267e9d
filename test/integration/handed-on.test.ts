import { expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../src/core/job.js';
import type { Assignment, WorkerView } from '../../src/core/wire.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';
import { until } from './store/test-shard.js';

/** A node under a clock that the test moves, on which workers are dead after 10 s without a word. */
async function start(): Promise<{ node: TestNode; clock: TestClock }> {
  const clock = new TestClock();
  return { node: await nodeForTest({ clock, settings: { leaseTtl: '5s' } }), clock };
}

/** A job whose attempt a worker has taken and handed on. */
async function handedOn(node: TestNode, submission: Record<string, unknown> = {}, slots = 10) {
  const worker = await ProtocolWorker.register(node, { slots });
  const { id } = await node.submit({ task: 'work', ...submission });
  const attempt = await worker.claimOne();
  expect(await worker.handOn(attempt)).toMatchObject({ accepted: [id], stale: [] });
  return { worker, id, attempt };
}

const read = (node: TestNode, id: string) => node.get<Job>('GET', `/v1/jobs/${id}`);

async function letDie(node: TestNode, clock: TestClock, dead: ProtocolWorker): Promise<void> {
  clock.advance(10_001);
  await expect
    .poll(async () => (await node.get<WorkerView>('GET', `/v1/workers/${dead.id}`)).state, { timeout: 5_000 })
    .toBe('dead');
}

/** What whoever holds the token of the attempt says about it. */
async function say(node: TestNode, verb: string, attempt: Assignment, body: object): Promise<number> {
  const { jobId, fence, token } = attempt;
  const ask = { key: token!, body: { fence, ...body } };
  return (await node.ask('POST', `/v1/jobs/${jobId}/${verb}`, ask)).status;
}

it('an attempt that was handed on runs without a slot and is completed by its token', async () => {
  const { node } = await start();
  const { worker, id, attempt } = await handedOn(node, {}, 1);
  expect(await read(node, id)).toMatchObject({ state: 'running', fence: 1, worker: worker.id });
  expect(await node.get('GET', `/v1/jobs/${id}/why`)).toMatchObject({
    state: 'running',
    gate: 'not-waiting',
  });
  expect(await node.get('GET', `/v1/workers/${worker.id}`)).toMatchObject({ running: 0 });

  const { id: next } = await node.submit({ task: 'work' });
  const other = await worker.claimOne();
  expect(other.jobId).toBe(next);
  expect(await say(node, 'progress', attempt, { progress: 0.5 })).toBe(204);
  const line = { at: new Date().toISOString(), level: 'info', message: 'on it' };
  expect(await say(node, 'logs', attempt, { lines: [line] })).toBe(204);
  expect(await read(node, id)).toMatchObject({ progress: { progress: 0.5 } });

  expect(await say(node, 'complete', attempt, { result: 'done' })).toBe(204);
  expect(await node.ended(id)).toMatchObject({
    state: 'succeeded',
    result: 'done',
    attempts: [{ fence: 1, outcome: 'succeeded', worker: worker.id }],
  });
  expect(await worker.succeed(other)).toMatchObject({ accepted: [next] });
});

it('a change of many jobs does not wait for the end of an attempt whose job another session has locked', async () => {
  const { node, clock } = await start();
  const { id } = await handedOn(node);
  const waiting = await node.submit({ task: 'nobody' });
  await withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM punctual.jobs WHERE id = $1 FOR UPDATE', [id]);
    const answer = await node.get('POST', '/v1/jobs/cancel', { body: { all: true } });
    expect(answer).toMatchObject({ changed: 2, next: null, refused: [] });
    expect(await read(node, waiting.id)).toMatchObject({ state: 'cancelled' });
    expect(await read(node, id)).toMatchObject({ state: 'running' });
    await client.query('COMMIT');
  });
  // An end that met the lock is tried again after a second.
  await until(async () => {
    clock.advance(1_000);
    return (await read(node, id)).state === 'cancelled';
  });
});

it('an attempt that was handed on is not offered again, nor stopped, and a repeated report is accepted', async () => {
  const { node, clock } = await start();
  const { worker, id, attempt } = await handedOn(node);
  for (let step = 0; step < 4; step++) {
    clock.advance(5_000);
    expect(await worker.heartbeat([])).toMatchObject({ stop: [] });
    await worker.claimNothing();
  }
  expect(await worker.heartbeat([attempt])).toMatchObject({ stop: [] });
  expect(await worker.handOn(attempt)).toMatchObject({ accepted: [id] });
  expect(await read(node, id)).toMatchObject({ state: 'running', fence: 1 });
});

it('a report that comes before its worker has handed the attempt on ends it, and the later hand-on changes nothing', async () => {
  const { node } = await start();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work' });
  const attempt = await worker.claimOne();
  expect(await say(node, 'complete', attempt, { result: 'early' })).toBe(204);
  expect(await worker.handOn(attempt)).toMatchObject({ accepted: [id], stale: [] });
  expect(await say(node, 'complete', attempt, { result: 'early' })).toBe(204);
  expect(await node.ended(id)).toMatchObject({ state: 'succeeded', result: 'early', fence: 1 });
});

it('an attempt that was handed on and fails by its token is tried again', async () => {
  const { node } = await start();
  const { worker, id, attempt } = await handedOn(node, { retry: { backoff: { base: '1ms' } } });
  expect(await say(node, 'fail', attempt, { error: { message: 'no luck' } })).toBe(204);
  expect(await worker.handOn(attempt)).toMatchObject({ accepted: [id], stale: [] });
  expect(await read(node, id)).toMatchObject({ attempts: [{ outcome: 'failed' }] });
});

it('a failure that comes before its worker has handed the attempt on counts, and the later hand-on changes nothing', async () => {
  const { node } = await start();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', retry: { maxAttempts: 1 } });
  const attempt = await worker.claimOne();
  expect(await say(node, 'fail', attempt, { error: { message: 'early' } })).toBe(204);
  expect(await worker.handOn(attempt)).toMatchObject({ accepted: [id], stale: [] });
  expect(await node.ended(id)).toMatchObject({ state: 'failed', error: { message: 'early' }, fence: 1 });
});

it('an attempt whose deadline passed while no leader was there can still be reported, for a worker timeout', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const clock = new TestClock();
  const settings = { leaseTtl: '30s' };
  const first = await nodeForTest({ database, clock, settings });
  const submission = { timeout: '60s', retry: { maxAttempts: 1 } };
  const done = await handedOn(first, submission);
  const late = await handedOn(first, submission);
  await first.node.stop();
  clock.advance(300_000);
  const second = await nodeForTest({ database, clock, settings });
  // Long enough for several looks at what is overdue.
  clock.advance(5_000);
  const worker = await ProtocolWorker.register(second);
  await worker.claimNothing();
  expect(await read(second, late.id)).toMatchObject({ state: 'running' });
  expect(await say(second, 'complete', done.attempt, { result: 'at last' })).toBe(204);
  expect(await second.ended(done.id)).toMatchObject({ state: 'succeeded', result: 'at last' });
  await expect
    .poll(
      async () => {
        clock.advance(1_000);
        return read(second, late.id);
      },
      { timeout: 20_000, interval: 200 },
    )
    .toMatchObject({ state: 'failed', attempts: [{ outcome: 'timed-out' }] });
});

it('an attempt that was handed on counts against the limit of its queue', async () => {
  const { node } = await start();
  await node.get('PATCH', '/v1/queues/default', { body: { concurrency: 1 } });
  const { worker, id, attempt } = await handedOn(node);
  const { id: next } = await node.submit({ task: 'work' });
  await worker.claimNothing();
  expect(await node.get('GET', `/v1/jobs/${next}/why`)).toMatchObject({ gate: 'limit' });
  expect(await say(node, 'complete', attempt, {})).toBe(204);
  expect(await node.ended(id)).toMatchObject({ state: 'succeeded' });
  expect((await worker.claimOne()).jobId).toBe(next);
});

it('an attempt that was handed on times out, counted from its start, and is tried again', async () => {
  const { node, clock } = await start();
  const worker = await ProtocolWorker.register(node);
  const retry = { backoff: { base: '1ms', jitter: 0 } };
  const { id } = await node.submit({ task: 'work', timeout: '60s', retry });
  const attempt = await worker.claimOne();
  clock.advance(8_000);
  await worker.handOn(attempt, new Date(clock.now()).toISOString());
  for (const ms of [5_000, 40_000, 14_000]) {
    clock.advance(ms);
    await worker.heartbeat().catch(() => undefined);
  }
  expect(await read(node, id)).toMatchObject({ state: 'running', fence: 1, attempts: [{ outcome: null }] });
  clock.advance(1_001);
  await expect
    .poll(async () => (await read(node, id)).attempts[0]?.outcome, { timeout: 5_000 })
    .toBe('timed-out');
  expect(await say(node, 'complete', attempt, {})).toBe(409);
});

it('an attempt that was handed on survives the death of its worker, also of an at-most-once job', async () => {
  const { node, clock } = await start();
  const first = await handedOn(node);
  const second = await handedOn(node, { delivery: 'at-most-once' });
  await letDie(node, clock, first.worker);
  await letDie(node, clock, second.worker);
  for (const { id, attempt } of [first, second]) {
    expect(await read(node, id)).toMatchObject({ state: 'running', fence: 1 });
    expect(await say(node, 'complete', attempt, {})).toBe(204);
    expect(await node.ended(id)).toMatchObject({ state: 'succeeded', attempts: [{ fence: 1 }] });
  }
});

it('an attempt that was handed on survives a worker that registers anew, drains or leaves', async () => {
  const { node } = await start();
  const anew = await handedOn(node);
  await ProtocolWorker.register(node, { replaces: anew.worker.id });
  const drained = await handedOn(node);
  await node.get('POST', `/v1/workers/${drained.worker.id}/drain`);
  const left = await handedOn(node);
  await node.ask('DELETE', `/v1/workers/${left.worker.id}`, { body: { settled: true } });
  for (const { id, attempt } of [anew, drained, left]) {
    expect(await read(node, id)).toMatchObject({ state: 'running', fence: 1 });
    expect(await say(node, 'complete', attempt, {})).toBe(204);
  }
});

it('an attempt that is handed on while its worker leaves is lost only if the worker was told so', async () => {
  const { node } = await start();
  for (let round = 0; round < 5; round++) {
    const worker = await ProtocolWorker.register(node);
    const { id } = await node.submit({ task: 'work', delivery: 'at-most-once' });
    const attempt = await worker.claimOne();
    const leaving = node.ask('DELETE', `/v1/workers/${worker.id}`);
    const { accepted } = await worker.handOn(attempt);
    await leaving;
    expect((await read(node, id)).state).toBe(accepted.length > 0 ? 'running' : 'failed');
  }
});

it('a new leader knows what was handed on: it neither offers nor loses it, and keeps its deadline', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const clock = new TestClock();
  const settings = { leaseTtl: '5s' };
  const first = await nodeForTest({ database, clock, settings });
  const done = await handedOn(first);
  const late = await handedOn(first, { timeout: '60s', retry: { maxAttempts: 1 } });
  await first.node.stop();
  const second = await nodeForTest({ database, clock, settings });
  clock.advance(20_000);
  const worker = await ProtocolWorker.register(second);
  await worker.claimNothing();
  expect(await read(second, done.id)).toMatchObject({ state: 'running', fence: 1 });
  expect(await say(second, 'complete', done.attempt, {})).toBe(204);
  expect(await second.ended(done.id)).toMatchObject({ state: 'succeeded', attempts: [{ fence: 1 }] });
  clock.advance(41_000);
  expect(await second.ended(late.id)).toMatchObject({
    state: 'failed',
    attempts: [{ outcome: 'timed-out' }],
  });
});

it('cancel ends an attempt that was handed on at once', async () => {
  const { node } = await start();
  const { id, attempt } = await handedOn(node);
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  expect(await read(node, id)).toMatchObject({ state: 'cancelled', attempts: [{ outcome: 'cancelled' }] });
  expect(await say(node, 'progress', attempt, { progress: 0.5 })).toBe(409);
  expect(await say(node, 'complete', attempt, {})).toBe(409);
});

it('an attempt that is handed on after its job was cancelled ends', async () => {
  const { node } = await start();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work' });
  const attempt = await worker.claimOne();
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  await worker.handOn(attempt);
  expect(await node.ended(id)).toMatchObject({ state: 'cancelled' });
});

it('a failed attempt is not followed by another before the time it asks for, nor before the backoff', async () => {
  const { node, clock } = await start();
  const worker = await ProtocolWorker.register(node);
  const retry = { backoff: { base: '1m', jitter: 0 } };
  const runAtAfter = async (retryAfterMs: number): Promise<number> => {
    const { id } = await node.submit({ task: 'work', retry });
    const { jobId, fence } = await worker.claimOne();
    const error = { message: 'busy' };
    expect(await worker.report({ jobId, fence, outcome: 'failed', error, retryAfterMs })).toMatchObject({
      accepted: [id],
    });
    return Date.parse((await read(node, id)).runAt) - clock.now();
  };
  expect(await runAtAfter(3_600_000)).toBe(3_600_000);
  expect(await runAtAfter(1_000)).toBe(60_000);
});

it.each([-1, 1.5, 86_400_001, '1s'])(
  'a time of %j before the next attempt is refused',
  async (retryAfterMs) => {
    const { node } = await start();
    const worker = await ProtocolWorker.register(node);
    const { id } = await node.submit({ task: 'work' });
    const { jobId, fence, token } = await worker.claimOne();
    const failure = { fence, error: { message: 'busy' }, retryAfterMs };
    const results = [{ jobId, outcome: 'failed', ...failure }];
    expect(await node.ask('POST', `/v1/workers/${worker.id}/report`, { body: { results } })).toMatchObject({
      status: 422,
    });
    expect(await node.ask('POST', `/v1/jobs/${id}/fail`, { key: token!, body: failure })).toMatchObject({
      status: 422,
    });
  },
);

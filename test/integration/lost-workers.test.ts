import { expect, it } from 'vitest';
import { task } from '../../src/core/task.js';
import type { StatsView, WorkerView } from '../../src/core/wire.js';
import { Happening } from '../happening.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';
import { WorkerProcess } from '../worker-process.js';

/** Dead workers are noticed quickly. */
const QUICK = { heartbeatInterval: '200ms', workerTimeout: '1s' };

/** A node under a clock that the test moves, on which workers are dead after 10 s without a word. */
async function start(): Promise<{ node: TestNode; clock: TestClock }> {
  const clock = new TestClock();
  return { node: await nodeForTest({ clock, settings: { leaseTtl: '5s' } }), clock };
}

/** Lets a silent worker die while others are heard of. */
async function letDie(node: TestNode, clock: TestClock, dead: ProtocolWorker): Promise<void> {
  clock.advance(10_001);
  await expect
    .poll(async () => (await node.get<WorkerView>('GET', `/v1/workers/${dead.id}`)).state, { timeout: 5_000 })
    .toBe('dead');
}

it('an at-most-once job of a killed worker is failed as lost and never started again', async () => {
  const node = await nodeForTest({ settings: QUICK });
  const killed = new WorkerProcess(node);
  const { id } = await node.submit({ task: 'endless', delivery: 'at-most-once' });
  await killed.started.times(1);
  const startedAgain = new Happening();
  await node.work([task('endless', () => startedAgain.happen())]);
  await killed.kill();
  expect(await node.ended(id)).toMatchObject({
    state: 'failed',
    error: { code: 'LOST' },
    attempt: 1,
    attempts: [{ outcome: 'lost', fence: 1 }],
  });
  expect(await node.ask('POST', `/v1/jobs/${id}/retry`)).toMatchObject({
    status: 409,
    body: { code: 'AT_MOST_ONCE' },
  });
  expect(startedAgain.all).toHaveLength(0);
});

it('an at-least-once job of a killed worker goes to another, with both attempts on record', async () => {
  const node = await nodeForTest({ settings: QUICK });
  const killed = new WorkerProcess(node);
  const { id } = await node.submit({ task: 'endless', payload: 'kept' });
  await killed.started.times(1);
  const other = await node.work([task('endless', (input: string, { fence }) => `${input} ${fence}`)]);
  await killed.kill();
  const job = await node.ended(id);
  expect(job).toMatchObject({
    state: 'succeeded',
    result: 'kept 2',
    worker: other.status().workerId,
    attempts: [
      { fence: 1, outcome: 'lost', error: { code: 'LOST' } },
      { fence: 2, outcome: 'succeeded', worker: other.status().workerId },
    ],
  });
  expect(job.attempts[0]!.worker).not.toBe(job.attempts[1]!.worker);
  const workers = await node.get<{ data: WorkerView[] }>('GET', '/v1/workers');
  expect(workers.data.find(({ name }) => name === 'to-be-killed')).toMatchObject({
    state: 'dead',
    running: 0,
  });
  expect(await node.get<StatsView>('GET', '/v1/stats')).toMatchObject({ jobsRequeued: 1, jobsRetried: 0 });
});

it('a handler that ends its process costs its own job an attempt and no other', async () => {
  const node = await nodeForTest({ settings: QUICK });
  const exiting = new WorkerProcess(node);
  const { id: bystander } = await node.submit({ task: 'endless', queue: 'default' });
  await exiting.started.times(1);
  const { id } = await node.submit({ task: 'exits', retry: { onWorkerLost: { maxAttempts: 1 } } });
  await node.work([task('endless', () => 'done elsewhere')]);
  expect(await node.ended(id)).toMatchObject({ state: 'failed', attempts: [{ outcome: 'lost' }] });
  expect(await node.ended(bystander)).toMatchObject({ state: 'succeeded', result: 'done elsewhere' });
});

it('losses draw on a budget of their own', async () => {
  const { node, clock } = await start();
  const { id } = await node.submit({
    task: 'work',
    retry: { maxAttempts: 1, onWorkerLost: { maxAttempts: 3 } },
  });
  for (const attempt of [1, 2, 3]) {
    const worker = await ProtocolWorker.register(node);
    expect(await worker.claimOne()).toMatchObject({ jobId: id, fence: attempt });
    await letDie(node, clock, worker);
  }
  const job = await node.ended(id);
  expect(job).toMatchObject({ state: 'failed', error: { code: 'LOST' } });
  expect(job.attempts.map((attempt) => attempt.outcome)).toEqual(['lost', 'lost', 'lost']);
});

it('the late result of a lost attempt is refused and changes nothing', async () => {
  const { node, clock } = await start();
  const { id } = await node.submit({ task: 'work' });
  const slow = await ProtocolWorker.register(node);
  const lost = await slow.claimOne();
  await letDie(node, clock, slow);
  const next = await ProtocolWorker.register(node);
  const second = await next.claimOne();
  expect(second).toMatchObject({ jobId: id, fence: 2 });

  const before = await node.job(id);
  const late = { fence: lost.fence, result: 'too late' };
  for (const key of [lost.token!, node.apiKey]) {
    expect(await node.ask('POST', `/v1/jobs/${id}/complete`, { key, body: late })).toMatchObject({
      status: 409,
      body: { code: 'STALE_FENCE' },
    });
  }
  expect(
    await node.ask('POST', `/v1/jobs/${id}/fail`, { body: { fence: 1, error: { message: 'late' } } }),
  ).toMatchObject({ status: 409, body: { code: 'STALE_FENCE' } });
  // The lost worker comes back under a new session, as the protocol wants, and reports what it has.
  const back = await ProtocolWorker.register(node);
  expect(await back.heartbeat([lost])).toMatchObject({ stop: [{ jobId: id, fence: 1 }] });
  expect(await back.succeed(lost, 'too late')).toMatchObject({ accepted: [], stale: [id] });
  expect(await node.job(id)).toEqual(before);

  expect(await next.succeed(second, 'in time')).toMatchObject({ accepted: [id] });
  expect(await back.succeed(lost, 'too late')).toMatchObject({ stale: [id] });
  expect(await node.job(id)).toMatchObject({ state: 'succeeded', result: 'in time' });
  await expect
    .poll(async () => (await node.get<StatsView>('GET', '/v1/stats')).staleCompletions, { timeout: 5_000 })
    .toBe(4);
  expect((await node.get<StatsView>('GET', '/v1/stats')).staleFailures).toBe(1);
});

it('a repeated report is accepted again and counts once', async () => {
  const { node } = await start();
  const worker = await ProtocolWorker.register(node);
  const succeeded = await node.submit({ task: 'work' });
  const first = await worker.claimOne();
  const failed = await node.submit({ task: 'work', delay: '0s' });
  const second = await worker.claimOne();
  for (let n = 0; n < 3; n++) {
    expect(await worker.succeed(first, `report ${n}`)).toMatchObject({ accepted: [succeeded.id], stale: [] });
    expect(await worker.fail(second, `report ${n}`)).toMatchObject({ accepted: [failed.id], stale: [] });
  }
  expect(await node.job(succeeded.id)).toMatchObject({ result: 'report 0', attempt: 1 });
  expect(await node.job(failed.id)).toMatchObject({ state: 'pending', attempt: 1 });
  // Another outcome of the same attempt is no repetition.
  expect(await worker.succeed(second)).toMatchObject({ stale: [failed.id] });
  expect(await worker.fail(first)).toMatchObject({ stale: [succeeded.id] });
  expect(await node.get<StatsView>('GET', '/v1/stats')).toMatchObject({ jobsCompleted: 1, jobsRetried: 1 });
});

it('a hand-over that nobody acknowledged is offered again under the same fence, to the same worker', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock, settings: { heartbeatInterval: '1s', workerTimeout: '1h' } });
  const worker = await ProtocolWorker.register(node);
  const other = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', delivery: 'at-most-once' });
  const [lostOnTheWay] = await worker.claimSilently();
  expect(lostOnTheWay).toMatchObject({ jobId: id, fence: 1 });
  clock.advance(2_001);
  await other.claimNothing();
  expect(await worker.heartbeat([])).toMatchObject({ stop: [] });
  expect(await worker.claimOne()).toMatchObject({ jobId: id, fence: 1 });
  // Now it is acknowledged.
  clock.advance(10_000);
  await worker.claimNothing();
  expect(await worker.succeed({ jobId: id, fence: 1 }, 'once')).toMatchObject({ accepted: [id] });
});

it('a claim that finds its unacknowledged jobs just reported waits for others instead of being answered with nothing', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock, settings: { heartbeatInterval: '1s', workerTimeout: '1h' } });
  const worker = await ProtocolWorker.register(node);
  // Which of the two requests is faster differs from round to round.
  for (let round = 0; round < 20; round++) {
    await node.submit({ task: 'work' });
    const [held] = await worker.claimSilently();
    clock.advance(2_001);
    const claim = worker.claimSilently();
    await worker.succeed(held!);
    const next = await node.submit({ task: 'work' });
    const [offered] = await claim;
    expect([held!.jobId, next.id]).toContain(offered?.jobId);
    if (offered!.jobId === held!.jobId) expect((await worker.claimSilently())[0]?.jobId).toBe(next.id);
    await worker.succeed({ jobId: next.id, fence: 1 });
  }
});

it('a job whose claim was given up by the client is handed to the next claim', async () => {
  const node = await nodeForTest({ settings: { heartbeatInterval: '100ms', workerTimeout: '1h' } });
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work' });
  const gone = new AbortController();
  const claim = fetch(`${node.url}/v1/workers/${worker.id}/claim`, {
    method: 'POST',
    headers: { authorization: `Bearer ${node.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ max: 1, wait: '5s' }),
    signal: gone.signal,
  });
  gone.abort();
  await expect(claim).rejects.toThrow();
  await expect.poll(() => worker.claim(1, '20ms'), { timeout: 5_000 }).toMatchObject([{ jobId: id }]);
});

it('a worker that leaves with jobs it never began gives them back at once', async () => {
  const { node } = await start();
  const leaving = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work' });
  await leaving.claimOne();
  expect((await node.ask('DELETE', `/v1/workers/${leaving.id}`)).status).toBe(204);
  const next = await ProtocolWorker.register(node);
  expect(await next.claimOne()).toMatchObject({ jobId: id });
});

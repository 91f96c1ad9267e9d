import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { task } from '../../src/core/task.js';
import { Happening } from '../happening.js';
import { type ApiUser, TestNode, type TestTenant } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

/** Workers must not be taken for dead when a test moves the clock; their heartbeats come quickly. */
const SETTINGS = { workerTimeout: '2d', heartbeatInterval: '100ms' };
const MINUTE = 60_000;
/** Far enough ahead to wait outside the live table. */
const FAR_MS = 60 * MINUTE;

/** One node and one clock for all; each test has a tenant of its own, and time only ever moves forward. */
let shared: TestNode;
const clock = new TestClock();

beforeAll(async () => {
  shared = await TestNode.start({ clock, settings: SETTINGS });
});
afterAll(() => shared.stop());

async function start(): Promise<{ node: TestTenant; clock: TestClock; worker: ProtocolWorker }> {
  const node = shared.newTenant();
  return { node, clock, worker: await ProtocolWorker.register(node) };
}

/** The codes with which the requests are refused. */
async function refusals(
  node: ApiUser,
  ...requests: readonly (readonly [method: string, path: string, body?: unknown])[]
): Promise<unknown[]> {
  const answers = await Promise.all(
    requests.map(([method, path, body]) => node.ask(method, path, { ...(body !== undefined && { body }) })),
  );
  return answers.map(({ status, body }) => [status, body.code]);
}

const JOB = { task: 'work', payload: 'something' };

const soon = (clock: TestClock, ms: number) => new Date(clock.now() + ms).toISOString();

it('a held job waits until it is released', async () => {
  const { node, worker } = await start();
  const held = await node.submit({ ...JOB, hold: true });
  expect(held).toMatchObject({ state: 'pending', hold: true });
  const other = await node.submit({ ...JOB });
  expect(await worker.claimOne()).toMatchObject({ jobId: other.id });
  expect(await node.get('POST', `/v1/jobs/${held.id}/release`)).toMatchObject({ hold: false });
  expect(await worker.claimOne()).toMatchObject({ jobId: held.id });
});

it('a waiting job can be held and released, now or in the far future', async () => {
  const { node, clock, worker } = await start();
  const near = await node.submit({ ...JOB, delay: '10s' });
  const far = await node.submit({ ...JOB, delay: '1h' });
  for (const { id } of [near, far]) {
    expect(await node.get('POST', `/v1/jobs/${id}/hold`)).toMatchObject({ state: 'pending', hold: true });
  }
  clock.advance(2 * FAR_MS);
  await worker.claimNothing();
  expect(await node.get('POST', `/v1/jobs/${far.id}/release`)).toMatchObject({ hold: false });
  expect(await worker.claimOne()).toMatchObject({ jobId: far.id });
  await node.get('POST', `/v1/jobs/${near.id}/release`);
  expect(await worker.claimOne()).toMatchObject({ jobId: near.id });
});

it('a job that waits for its next attempt can be held, and keeps its attempts', async () => {
  const { node, clock, worker } = await start();
  const { id } = await node.submit({ ...JOB });
  await worker.fail(await worker.claimOne());
  await node.get('POST', `/v1/jobs/${id}/hold`);
  clock.advance(MINUTE);
  await worker.claimNothing();
  expect(await node.get('POST', `/v1/jobs/${id}/release`)).toMatchObject({
    attempts: [{ fence: 1, outcome: 'failed' }],
  });
  expect(await worker.claimOne()).toMatchObject({ jobId: id, fence: 2 });
});

it('hold and release are refused where they mean nothing', async () => {
  const { node, worker } = await start();
  const held = await node.submit({ ...JOB, hold: true });
  const { id } = await node.submit({ ...JOB });
  expect(
    await refusals(node, ['POST', `/v1/jobs/${held.id}/hold`], ['POST', `/v1/jobs/${id}/release`]),
  ).toEqual([
    [409, 'JOB_HELD'],
    [409, 'JOB_NOT_HELD'],
  ]);
  const assignment = await worker.claimOne();
  expect(await refusals(node, ['POST', `/v1/jobs/${id}/hold`])).toEqual([[409, 'JOB_STARTED']]);
  await worker.succeed(assignment);
  expect(
    await refusals(
      node,
      ['POST', `/v1/jobs/${id}/hold`],
      ['POST', `/v1/jobs/${id}/release`],
      ['POST', `/v1/jobs/${id}/cancel`],
      ['PATCH', `/v1/jobs/${id}`, { priority: 1 }],
    ),
  ).toEqual(new Array(4).fill([409, 'JOB_ENDED']));
});

it('a job is never handed out before it is due', async () => {
  const { node, clock, worker } = await start();
  const delayed = await node.submit({ ...JOB, delay: '5s' });
  const timed = await node.submit({ ...JOB, runAt: soon(clock, 7_000) });
  expect(Date.parse(delayed.runAt)).toBe(clock.now() + 5_000);
  clock.advance(4_999);
  await worker.claimNothing();
  const claim = worker.claim(10);
  clock.advance(1);
  expect(await claim).toMatchObject([{ jobId: delayed.id }]);
  clock.advance(1_999);
  await worker.claimNothing();
  clock.advance(1);
  expect(await worker.claimOne()).toMatchObject({ jobId: timed.id });
  expect(await node.job(timed.id)).toMatchObject({ lateBy: 0 });
});

it('a job in the far future is admitted in time and starts when it is due', async () => {
  const { node, clock, worker } = await start();
  const { id } = await node.submit({ ...JOB, delay: '1h' });
  clock.advance(FAR_MS - MINUTE);
  // It is admitted ten minutes ahead, by the pass that looks once a second.
  await expect
    .poll(
      async () => (await node.get<{ data: { upcoming: number }[] }>('GET', '/v1/queues')).data[0]?.upcoming,
      { timeout: 10_000 },
    )
    .toBe(1);
  await worker.claimNothing();
  clock.advance(MINUTE);
  expect(await worker.claimOne()).toMatchObject({ jobId: id });
  expect(await node.job(id)).toMatchObject({ lateBy: 0 });
});

it('a due time in the past means now', async () => {
  const { node, clock, worker } = await start();
  const job = await node.submit({ ...JOB, runAt: '2020-01-01T00:00:00Z' });
  expect(Date.parse(job.runAt)).toBe(clock.now());
  expect(await worker.claimOne()).toMatchObject({ jobId: job.id });
});

it.each([
  ['near', 10_000],
  ['far', FAR_MS],
])('time, priority and payload of a job in the %s future can be changed', async (_, delayMs) => {
  const { node, clock, worker } = await start();
  const { id } = await node.submit({ ...JOB, delay: `${delayMs}ms` });
  const changed = await node.get<Job>('PATCH', `/v1/jobs/${id}`, {
    body: { priority: 9, payload: { text: 'é', n: 1e300 }, runAt: soon(clock, 5_000) },
  });
  expect(changed).toMatchObject({
    id,
    state: 'pending',
    priority: 9,
    payload: { text: 'é', n: 1e300 },
  });
  expect(Date.parse(changed.runAt)).toBe(clock.now() + 5_000);
  clock.advance(4_999);
  await worker.claimNothing();
  clock.advance(1);
  expect(await worker.claimOne()).toMatchObject({ jobId: id, payload: { text: 'é', n: 1e300 } });
});

it('a job can be moved from the near to the far future and back', async () => {
  const { node, clock, worker } = await start();
  const { id } = await node.submit({ ...JOB, delay: '5s', priority: 3 });
  await node.get('PATCH', `/v1/jobs/${id}`, { body: { runAt: soon(clock, FAR_MS) } });
  clock.advance(MINUTE);
  await worker.claimNothing();
  const back = await node.get<Job>('PATCH', `/v1/jobs/${id}`, { body: { runAt: soon(clock, 1_000) } });
  expect(back).toMatchObject({ priority: 3, state: 'pending' });
  clock.advance(1_000);
  expect(await worker.claimOne()).toMatchObject({ jobId: id });
});

it('a held job can be changed and stays on hold', async () => {
  const { node, worker } = await start();
  const { id } = await node.submit({ ...JOB, hold: true });
  const body = { payload: 'new', priority: 1 };
  expect(await node.get('PATCH', `/v1/jobs/${id}`, { body })).toMatchObject({ ...body, hold: true });
  await worker.claimNothing();
  await node.get('POST', `/v1/jobs/${id}/release`);
  expect(await worker.claimOne()).toMatchObject({ jobId: id, payload: 'new' });
});

it('a job that has started once cannot be changed any more', async () => {
  const { node, worker } = await start();
  const { id } = await node.submit({ ...JOB });
  const change = ['PATCH', `/v1/jobs/${id}`, { priority: 9 }] as const;
  const assignment = await worker.claimOne();
  expect(await refusals(node, change)).toEqual([[409, 'JOB_STARTED']]);
  await worker.fail(assignment);
  expect(await refusals(node, change)).toEqual([[409, 'JOB_STARTED']]);
});

it('a waiting job is cancelled at once, wherever it waits', async () => {
  const { node, clock, worker } = await start();
  for (const submission of [{}, { delay: '10s' }, { delay: '1h' }, { hold: true }]) {
    const { id } = await node.submit({ ...JOB, queue: 'nobody', ...submission });
    expect(await node.get('POST', `/v1/jobs/${id}/cancel`)).toMatchObject({
      id,
      state: 'cancelled',
      attempts: [],
      finishedAt: expect.any(String),
    });
    expect(await refusals(node, ['POST', `/v1/jobs/${id}/cancel`])).toEqual([[409, 'JOB_ENDED']]);
  }
  clock.advance(2 * FAR_MS);
  await worker.claimNothing();
});

it('somebody who waits for a job hears of its cancellation at once', async () => {
  const { node } = await start();
  const { id } = await node.submit({ ...JOB, delay: '1h' });
  const waiting = node.ended(id);
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  expect(await waiting).toMatchObject({ state: 'cancelled' });
});

it('a running job is told to stop and is cancelled when its worker confirms', async () => {
  const node = shared.newTenant();
  const started = new Happening<AbortSignal>();
  const endless = task('endless', (_: null, { signal }) => {
    started.happen(signal);
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  });
  await node.work([endless]);
  const handle = await node.connect().submit(endless, null);
  await started.times(1);
  // Its worker may have confirmed before the answer was read.
  expect(await handle.cancel()).toMatchObject({ state: expect.stringMatching(/^(running|cancelled)$/) });
  await expect(handle.result()).rejects.toMatchObject({
    code: 'JOB_UNSUCCESSFUL',
    job: { state: 'cancelled', attempts: [{ fence: 1, outcome: 'cancelled' }] },
  });
  expect(started.all[0]!.reason).toMatchObject({ code: 'ATTEMPT_STOPPED' });
});

it('a cancellation that its worker has not confirmed yet is shown', async () => {
  const { node, worker } = await start();
  const { id } = await node.submit({ ...JOB });
  await worker.claimOne();
  expect(await node.job(id)).toMatchObject({ state: 'running', cancelRequestedAt: null });
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  expect(await node.job(id)).toMatchObject({ state: 'running', cancelRequestedAt: expect.any(String) });
  expect(await node.get('GET', `/v1/jobs/${id}/why`)).toMatchObject({
    detail: expect.stringMatching(/^The job is running\. Its worker was told at .* to stop/),
  });
});

it('a job that finishes in spite of its cancellation has succeeded', async () => {
  const { node, worker } = await start();
  const { id } = await node.submit({ ...JOB });
  const assignment = await worker.claimOne();
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  expect(await worker.heartbeat([assignment])).toMatchObject({ stop: [{ jobId: id, fence: 1 }] });
  expect(await worker.succeed(assignment, 'done')).toMatchObject({ accepted: [id] });
  expect(await node.job(id)).toMatchObject({ state: 'succeeded', result: 'done' });
});

it('a worker that does not confirm a cancellation is waited for no longer than the grace', async () => {
  const { node, clock, worker } = await start();
  const { id } = await node.submit({ ...JOB });
  const assignment = await worker.claimOne();
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  const ended = node.ended(id);
  clock.advance(10_001);
  expect(await ended).toMatchObject({ state: 'cancelled', attempts: [{ outcome: 'cancelled' }] });
  expect(await worker.succeed(assignment)).toMatchObject({ stale: [id] });
});

it.each([
  ['is due', {}],
  ['is on hold', { hold: true }],
  ['is due in the near future', { delay: '10s' }],
  ['is due in the far future', { delay: '1h' }],
])('a job that could not start in time and %s has failed as expired', async (_, submission) => {
  const { node, clock } = await start();
  const startBefore = soon(clock, FAR_MS + MINUTE);
  const { id } = await node.submit({ ...JOB, task: 'nobody', startBefore, ...submission });
  const ended = node.ended(id);
  clock.advance(FAR_MS + MINUTE - 1);
  expect(await node.job(id)).toMatchObject({ state: 'pending', startBefore });
  clock.advance(1);
  expect(await ended).toMatchObject({ state: 'failed', error: { code: 'EXPIRED' }, attempts: [] });
});

it('a job that started in time may run and be retried after its last moment to start', async () => {
  const { node, clock, worker } = await start();
  const { id } = await node.submit({ ...JOB, startBefore: soon(clock, 1_000) });
  const assignment = await worker.claimOne();
  clock.advance(MINUTE);
  await worker.fail(assignment);
  clock.advance(MINUTE);
  const again = await worker.claimOne();
  expect(again).toMatchObject({ jobId: id, fence: 2 });
  expect(await worker.succeed(again)).toMatchObject({ accepted: [id] });
});

it.each([
  ['live', {}],
  ['held', { hold: true }],
  ['due in the far future', { delay: '1h' }],
])('a %s job can do without a payload', async (_, submission) => {
  const { node, clock, worker } = await start();
  const { id } = await node.submit({ task: 'work', ...submission });
  expect(await node.job(id)).toMatchObject({ state: 'pending', payload: null });
  if ('hold' in submission) await node.get('POST', `/v1/jobs/${id}/release`);
  clock.advance(FAR_MS);
  expect(await worker.claimOne()).toMatchObject({ jobId: id, payload: null });
});

it.each([
  ['live', {}],
  ['held', { hold: true }],
  ['due in the far future', { delay: '1h' }],
])('a %s job can have any JSON as its payload', async (_, submission) => {
  const { node, clock, worker } = await start();
  const odd = { nul: 'a\u0000b', lone: '\ud800', 'k\u0000': [1e300, -0.5, '"\\', null], '': {} };
  const { id } = await node.submit({ task: 'work', payload: 1, ...submission });
  const plain = await node.submit({ task: 'work', payload: 2, ...submission });
  await node.get('PATCH', `/v1/jobs/${id}`, { body: { payload: odd } });
  const { id: second } = await node.submit({ task: 'work', payload: odd, ...submission });
  for (const each of [id, second]) expect(await node.job(each)).toMatchObject({ payload: odd });
  if ('hold' in submission) {
    for (const each of [id, second, plain.id]) await node.get('POST', `/v1/jobs/${each}/release`);
  }
  clock.advance(FAR_MS);
  const claimed = new Map<string, unknown>();
  while (claimed.size < 3) for (const job of await worker.claim(3)) claimed.set(job.jobId, job.payload);
  expect(Object.fromEntries(claimed)).toEqual({ [id]: odd, [second]: odd, [plain.id]: 2 });
});

import { expect, it } from 'vitest';
import type { Batch, BatchSummary, BatchWhy } from '../../../src/core/batch.js';
import type { Page, Why } from '../../../src/core/wire.js';
import { nodeForTest } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { endedBatch, readBatch, submitBatch } from './batch-user.js';

const states = ({ jobs }: Batch) => jobs.map(({ state }) => state);

it('three members and two free slots: nothing starts; a third slot joins: all three start', async () => {
  const node = await nodeForTest();
  const first = await ProtocolWorker.register(node, { slots: 2 });
  const batch = await submitBatch(node, 3);
  expect(batch).toMatchObject({ state: 'pending', size: 3, run: 1, onFailure: 'cancel-rest' });
  await first.claimNothing();
  expect(states(await readBatch(node, batch.id))).toEqual(['blocked', 'blocked', 'blocked']);

  const second = await ProtocolWorker.register(node, { slots: 1 });
  const started = (await Promise.all([first.claim(2), second.claim(1)])).flat();
  expect(started.map(({ jobId }) => jobId).sort()).toEqual(batch.jobs.map(({ id }) => id).sort());
  expect(await readBatch(node, batch.id)).toMatchObject({ state: 'running', startedAt: expect.any(String) });
  expect(await node.job(batch.jobs[0]!.id)).toMatchObject({ state: 'running', batch: batch.id, fence: 1 });

  for (const worker of [first, second])
    for (const job of [...worker.held.values()]) await worker.succeed(job);
  const ended = await endedBatch(node, batch.id);
  expect(ended).toMatchObject({ state: 'succeeded', endedAt: expect.any(String), error: null });
  expect(states(ended)).toEqual(['succeeded', 'succeeded', 'succeeded']);
});

it('claims that find no open poll go out with the next polls of their sessions', async () => {
  const node = await nodeForTest();
  const workers = await Promise.all([1, 2, 3].map(() => ProtocolWorker.register(node, { slots: 1 })));
  const batch = await submitBatch(node, 3);
  // Nobody asks at the moment; the slots are free all the same.
  await until(async () => (await readBatch(node, batch.id)).state === 'running');
  for (const worker of workers) expect(await worker.claim(1)).toHaveLength(1);
});

it('members go only where their queue, handler and labels fit, as a whole', async () => {
  const node = await nodeForTest();
  const eu = await ProtocolWorker.register(node, { slots: 2, labels: { region: 'eu' } });
  const us = await ProtocolWorker.register(node, { slots: 1, labels: { region: 'us' } });
  const both = [
    { requires: { region: 'eu' } },
    { requires: { region: 'us' } },
    { requires: { region: 'us' } },
  ];
  const impossible = await submitBatch(node, both);
  const possible = await submitBatch(node, [...both.slice(0, 2), {}]);
  expect([...(await eu.claim(2)), ...(await us.claim(1))].map(({ jobId }) => jobId).sort()).toEqual(
    possible.jobs.map(({ id }) => id).sort(),
  );
  expect((await readBatch(node, impossible.id)).state).toBe('pending');
});

it('says at once that a batch is larger than what all workers have', async () => {
  const node = await nodeForTest({ settings: { workerTimeout: '200ms', heartbeatInterval: '50ms' } });
  await pastFirstTimeout();
  const worker = await ProtocolWorker.register(node, { slots: 2 });
  const beat = keepAlive([worker]);
  const batch = await submitBatch(node, 3);
  const why = await node.get<Why>('GET', `/v1/jobs/${batch.jobs[0]!.id}/why`);
  expect(why).toMatchObject({
    gate: 'batch',
    figures: { waitingFor: 'capacity', batch: batch.id, members: 3, slots: 2 },
  });
  const own = await node.get<BatchWhy>('GET', `/v1/batches/${batch.id}/why`);
  expect(own).toMatchObject({ waitingFor: 'capacity', detail: expect.stringContaining('larger than') });
  beat();
});

it('a new leader does not call a batch impossible before workers could come back', async () => {
  const node = await nodeForTest();
  const batch = await submitBatch(node, 3);
  const why = await node.get<BatchWhy>('GET', `/v1/batches/${batch.id}/why`);
  expect(why).toMatchObject({ waitingFor: 'workers', detail: expect.stringContaining('leader is new') });
});

it('a batch that cannot start in time fails as a whole, and says which member found no place', async () => {
  const node = await nodeForTest();
  await ProtocolWorker.register(node, { slots: 2 });
  const batch = await submitBatch(node, 3, { startTimeout: '300ms' });
  const ended = await endedBatch(node, batch.id);
  expect(ended).toMatchObject({ state: 'failed', startedAt: null, error: { code: 'BATCH_NOT_STARTED' } });
  expect(ended.error!.message).toContain('300ms');
  expect(batch.jobs.some(({ id }) => ended.error!.message.includes(id))).toBe(true);
  expect(states(ended)).toEqual(['failed', 'failed', 'failed']);
  expect(await node.job(batch.jobs[1]!.id)).toMatchObject({
    attempt: 0,
    error: { code: 'BATCH_NOT_STARTED' },
  });
});

it('a member that fails cancels the rest, and a retry starts all again together under new fences', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, { slots: 3 });
  const batch = await submitBatch(node, 3);
  const [failing, running, finished] = await worker.claim(3);
  await worker.succeed(finished!);
  await worker.fail(failing!);
  await until(async () => (await worker.heartbeat()).stop.some(({ jobId }) => jobId === running!.jobId));
  await worker.report({ jobId: running!.jobId, fence: running!.fence, outcome: 'cancelled' } as never);
  const ended = await endedBatch(node, batch.id);
  expect(ended.state).toBe('failed');
  expect(states(ended).sort()).toEqual(['cancelled', 'failed', 'succeeded']);
  expect((await node.ask('POST', `/v1/jobs/${failing!.jobId}/retry`)).body).toMatchObject({
    code: 'BATCH_MEMBER',
  });

  const again = await node.get<Batch>('POST', `/v1/batches/${batch.id}/retry`);
  expect(again).toMatchObject({ run: 2, endedAt: null });
  // All slots are free, so it may have started before it was read for the answer.
  expect(['pending', 'running']).toContain(again.state);
  const second = await worker.claim(3);
  expect(second.map(({ fence }) => fence)).toEqual([2, 2, 2]);
  for (const job of second) await worker.succeed(job);
  expect(await endedBatch(node, batch.id)).toMatchObject({ state: 'succeeded', run: 2 });
  expect((await node.job(failing!.jobId)).attempts).toHaveLength(2);
});

it('with onFailure continue the others go on, and the batch has failed when all have ended', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, { slots: 2 });
  const batch = await submitBatch(node, 2, { onFailure: 'continue' });
  const [failing, other] = await worker.claim(2);
  await worker.fail(failing!);
  expect((await worker.heartbeat()).stop).toEqual([]);
  expect((await readBatch(node, batch.id)).state).toBe('running');
  await worker.succeed(other!);
  expect(await endedBatch(node, batch.id)).toMatchObject({ state: 'failed' });
});

it('a worker that dies loses its members, and the rest is cancelled', async () => {
  const node = await nodeForTest({ settings: { workerTimeout: '400ms', heartbeatInterval: '100ms' } });
  const doomed = await ProtocolWorker.register(node, { slots: 1 });
  const other = await ProtocolWorker.register(node, { slots: 1 });
  const beat = keepAlive([doomed, other]);
  const batch = await submitBatch(node, 2);
  await Promise.all([doomed.claim(1), other.claim(1)]);
  beat();
  const still = keepAlive([other]);
  const [mine] = other.held.values();
  await until(async () => (await other.heartbeat()).stop.length > 0);
  await other.report({ jobId: mine!.jobId, fence: mine!.fence, outcome: 'cancelled' } as never);
  still();
  const ended = await endedBatch(node, batch.id);
  expect(ended.state).toBe('failed');
  expect(states(ended).sort()).toEqual(['cancelled', 'failed']);
});

it('a session that ends before any member was handed over voids the start: all wait again', async () => {
  const node = await nodeForTest();
  const leaving = await ProtocolWorker.register(node, { slots: 1 });
  const staying = await ProtocolWorker.register(node, { slots: 1 });
  const batch = await submitBatch(node, 2);
  await until(async () => (await readBatch(node, batch.id)).state === 'running');
  await node.get('DELETE', `/v1/workers/${leaving.id}`);
  await until(async () => (await readBatch(node, batch.id)).state === 'pending');
  await staying.claimNothing();
  expect(states(await readBatch(node, batch.id))).toEqual(['blocked', 'blocked']);

  const late = await ProtocolWorker.register(node, { slots: 1 });
  const started = [...(await staying.claim(1)), ...(await late.claim(1))];
  // The fences of the first start are used up, and it leaves no attempt on record.
  expect(started.map(({ fence }) => fence)).toEqual([2, 2]);
  expect((await node.job(batch.jobs[0]!.id)).attempts).toHaveLength(1);
});

it('a worker that refuses voids the start if nothing has begun; else the member is lost', async () => {
  const node = await nodeForTest();
  const refusing = await ProtocolWorker.register(node, { slots: 1 });
  const other = await ProtocolWorker.register(node, { slots: 1 });
  const batch = await submitBatch(node, 2);
  const [job] = await refusing.claimSilently(1);
  await refuse(node, refusing, job!);
  await until(async () => (await readBatch(node, batch.id)).state === 'pending');
  expect((await node.job(job!.jobId)).attempts).toMatchObject([
    { outcome: 'lost', error: { code: 'NEVER_STARTED' } },
  ]);

  await other.claim(1);
  const [again] = await refusing.claimSilently(1);
  expect(again!.fence).toBe(2);
  await refuse(node, refusing, again!);
  await until(async () => (await node.job(again!.jobId)).state === 'failed');
  await until(async () => (await other.heartbeat()).stop.length === 1);
});

it('cancels a waiting batch at once and a running one when its workers have confirmed', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, { slots: 2 });
  const waiting = await submitBatch(node, 3);
  const cancelled = await node.get<Batch>('POST', `/v1/batches/${waiting.id}/cancel`);
  expect(cancelled.state).toBe('cancelled');
  expect(states(cancelled)).toEqual(['cancelled', 'cancelled', 'cancelled']);
  expect((await node.ask('POST', `/v1/batches/${waiting.id}/cancel`)).body).toMatchObject({
    code: 'BATCH_ENDED',
  });

  const running = await submitBatch(node, 2);
  const jobs = await worker.claim(2);
  expect(await node.get<Batch>('POST', `/v1/batches/${running.id}/cancel`)).toMatchObject({
    state: 'running',
  });
  const { stop } = await worker.heartbeat();
  expect(stop).toHaveLength(2);
  for (const { jobId, fence } of jobs) await worker.report({ jobId, fence, outcome: 'cancelled' } as never);
  expect(await endedBatch(node, running.id)).toMatchObject({ state: 'cancelled' });
  const { data } = await node.get<{ data: { action: string }[] }>('GET', '/v1/audit');
  expect(data.filter(({ action }) => action === 'batch.cancel')).toHaveLength(2);
});

it('a running batch of which nothing was handed over is cancelled at once, without its workers', async () => {
  const node = await nodeForTest();
  const workers = await Promise.all([1, 2].map(() => ProtocolWorker.register(node, { slots: 1 })));
  const batch = await submitBatch(node, 2);
  await until(async () => (await readBatch(node, batch.id)).state === 'running');
  await node.get('POST', `/v1/batches/${batch.id}/cancel`);
  const ended = await endedBatch(node, batch.id);
  expect([ended.state, ...states(ended)]).toEqual(['cancelled', 'cancelled', 'cancelled']);
  for (const worker of workers) await worker.claimNothing();
});

it('cancelling one waiting member cancels its batch: they start together or not at all', async () => {
  const node = await nodeForTest();
  const batch = await submitBatch(node, 2);
  await node.get('POST', `/v1/jobs/${batch.jobs[0]!.id}/cancel`);
  const ended = await endedBatch(node, batch.id);
  expect(ended.state).toBe('cancelled');
  expect(await node.job(batch.jobs[1]!.id)).toMatchObject({ error: { code: 'BATCH_BROKEN' } });
});

it('members are steered with their batch, and nothing of a batch is stored if a part of it is wrong', async () => {
  const node = await nodeForTest();
  const batch = await submitBatch(node, 2);
  const [job] = batch.jobs;
  for (const verb of ['hold', 'release'])
    expect((await node.ask('POST', `/v1/jobs/${job!.id}/${verb}`)).body).toMatchObject({
      code: 'BATCH_MEMBER',
    });
  expect((await node.ask('PATCH', `/v1/jobs/${job!.id}`, { body: { priority: 9 } })).body).toMatchObject({
    code: 'BATCH_MEMBER',
  });
  const wrong = await node.ask('POST', '/v1/batches', {
    body: {
      jobs: [
        { task: 'work', key: 'a' },
        { task: 'work', retry: { maxAttempts: 3 } },
      ],
    },
  });
  expect(wrong.status).toBe(422);
  expect(wrong.body).toMatchObject({
    errors: [{ pointer: '/jobs/0/key' }, { pointer: '/jobs/1/retry' }],
  });
  expect((await node.ask('POST', '/v1/batches', { body: { jobs: [] } })).status).toBe(422);
  const { data } = await node.get<Page<BatchSummary>>('GET', '/v1/batches?state=pending');
  expect(data.map(({ id }) => id)).toEqual([batch.id]);
  expect((await node.ask('GET', `/v1/batches/${job!.id}`)).status).toBe(404);
});

it('a batch waits for the last of its members to be due', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, { slots: 2 });
  await submitBatch(node, [{}, { delay: '300ms' }]);
  const before = Date.now();
  expect(await worker.claim(2)).toHaveLength(2);
  expect(Date.now() - before).toBeGreaterThan(200);
});

it('many retries that are refused at the same moment are all answered', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, { slots: 12 });
  const batches = await Promise.all(
    Array.from({ length: 12 }, () => submitBatch(node, [{ delivery: 'at-most-once' }])),
  );
  while (worker.held.size < 12) await worker.claim(12);
  for (const job of [...worker.held.values()]) await worker.fail(job);
  await Promise.all(batches.map(({ id }) => endedBatch(node, id)));
  const answers = await Promise.all(batches.map(({ id }) => node.ask('POST', `/v1/batches/${id}/retry`)));
  expect(new Set(answers.map(({ body }) => body.code))).toEqual(new Set(['BATCH_NOT_RETRYABLE']));
});

it('a request that is repeated with its Idempotency-Key stores one batch', async () => {
  const node = await nodeForTest();
  const ask = { body: { jobs: [{ task: 'work' }] }, headers: { 'idempotency-key': 'once' } };
  const first = await node.ask<Batch>('POST', '/v1/batches', ask);
  const second = await node.ask<Batch>('POST', '/v1/batches', ask);
  expect(second.body).toEqual(first.body);
  expect((await node.get<Page<BatchSummary>>('GET', '/v1/batches')).data).toHaveLength(1);
});

it('limits and rates count for a batch as a whole: it starts within them and may come into debt', async () => {
  const node = await nodeForTest();
  await node.get('PATCH', '/v1/queues/tight', { body: { concurrency: 2 } });
  await node.get('PATCH', '/v1/queues/slow', { body: { rate: { limit: 10, per: '1s', burst: 1 } } });
  const worker = await ProtocolWorker.register(node, { slots: 10, queues: ['*'] });
  const small = await node.submit({ task: 'work', queue: 'tight' });
  const [first] = await worker.claim(1);
  expect(first!.jobId).toBe(small.id);
  const batch = await submitBatch(node, [{ queue: 'tight' }, { queue: 'tight' }]);
  await worker.claimNothing();
  const why = await node.get<BatchWhy>('GET', `/v1/batches/${batch.id}/why`);
  expect(why).toMatchObject({ waitingFor: 'limit' });
  await worker.succeed(first!);
  expect(await worker.claim(2)).toHaveLength(2);

  await submitBatch(node, [{ queue: 'slow' }, { queue: 'slow' }, { queue: 'slow' }]);
  expect(await worker.claim(5)).toHaveLength(3);
  const before = Date.now();
  await node.submit({ task: 'work', queue: 'slow' });
  expect(await worker.claim(1)).toHaveLength(1);
  expect(Date.now() - before).toBeGreaterThan(150);
});

it('counts against the quota of jobs for later as a whole, and is listed by its filter', async () => {
  const node = await nodeForTest();
  const tenant = { tenant: 'small' };
  await node.get('POST', '/v1/tenants', { body: { id: 'small', name: 'Small', quotas: { laterJobs: 3 } } });
  const jobs = (count: number) => ({ jobs: Array.from({ length: count }, () => ({ task: 'work' })) });
  const refused = await node.ask('POST', '/v1/batches', { body: jobs(4), ...tenant });
  expect(refused.body).toMatchObject({ code: 'QUOTA_EXCEEDED' });
  const batch = await node.get<Batch>('POST', '/v1/batches', { body: jobs(3), ...tenant });
  expect((await node.ask('POST', '/v1/batches', { body: jobs(1), ...tenant })).status).toBe(429);
  const { data } = await node.get<Page<{ id: string }>>('GET', `/v1/jobs?batch=${batch.id}`, tenant);
  expect(data.map(({ id }) => id).sort()).toEqual(batch.jobs.map(({ id }) => id).sort());
  expect((await node.ask('GET', `/v1/batches/${batch.id}`)).status).toBe(404);
});

it('a restricted key submits and sees only batches all of whose members it reaches', async () => {
  const node = await nodeForTest();
  const { key } = await node.get<{ key: string }>('POST', '/v1/keys', {
    body: { name: 'mail', scopes: ['read', 'submit'], queues: ['mail'] },
  });
  const mixed = [{ task: 'work', queue: 'mail' }, { task: 'work' }];
  expect((await node.ask('POST', '/v1/batches', { body: { jobs: mixed }, key })).status).toBe(403);
  const hidden = await node.get<Batch>('POST', '/v1/batches', { body: { jobs: mixed } });
  const shown = await node.get<Batch>('POST', '/v1/batches', { body: { jobs: [mixed[0]] }, key });
  const { data } = await node.get<Page<BatchSummary>>('GET', '/v1/batches', { key });
  expect(data.map(({ id }) => id)).toEqual([shown.id]);
  for (const verb of ['cancel', 'retry'])
    expect((await node.ask('POST', `/v1/batches/${hidden.id}/${verb}`, { key })).status).toBe(404);
});

it('tells those who listen when batches are stored, start and end', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, { slots: 1 });
  const abort = new AbortController();
  const stream = await fetch(`${node.url}/v1/events?type=batch.*`, {
    headers: { authorization: `Bearer ${node.apiKey}` },
    signal: abort.signal,
  });
  const text = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  const batch = await submitBatch(node, 1);
  await worker.succeed(await worker.claimOne());
  let heard = '';
  while (!heard.includes('batch.succeeded')) heard += (await text.read()).value;
  abort.abort();
  const types = [...heard.matchAll(/"type":"(batch\.\w+)"/g)].map(([, type]) => type);
  expect(types).toEqual(['batch.submitted', 'batch.started', 'batch.succeeded']);
  expect(heard).toContain(`"batch":"${batch.id}"`);
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** A leader calls nothing impossible in its first worker timeout. */
function pastFirstTimeout(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 300));
}

function keepAlive(workers: readonly ProtocolWorker[]): () => void {
  const timer = setInterval(() => {
    for (const worker of workers) worker.heartbeat().catch(() => undefined);
  }, 80);
  return () => clearInterval(timer);
}

function refuse(
  node: Parameters<typeof submitBatch>[0],
  worker: ProtocolWorker,
  { jobId, fence }: { readonly jobId: string; readonly fence: number },
): Promise<unknown> {
  const body = { epoch: worker.welcome.epoch, running: [], refused: [{ jobId, fence }] };
  return node.get('POST', `/v1/workers/${worker.id}/heartbeat`, { body });
}

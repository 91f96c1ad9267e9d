import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../src/core/job.js';
import type { Assignment, Page, QueueView, StoredLogLine, WorkerView } from '../../src/core/wire.js';
import { type Answer, TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** Tenant `a` owns one job in every place and a worker; `b` tries everything on them. */
let node: TestNode;
let worker: ProtocolWorker;
let running: Assignment;
const jobs: Record<'waiting' | 'running' | 'held' | 'later' | 'failed', string> = {
  waiting: '',
  running: '',
  held: '',
  later: '',
  failed: '',
};

beforeAll(async () => {
  node = await TestNode.start();
  worker = await ProtocolWorker.register(node, { name: 'of-a' }, 'a');
  jobs.failed = (await node.submit({ task: 'work', payload: 1, delivery: 'at-least-once' }, 'a')).id;
  await worker.report({
    ...fenced(await worker.claimOne()),
    outcome: 'failed',
    error: { message: 'x' },
    retryable: false,
  });
  jobs.running = (await node.submit({ task: 'work', payload: 1 }, 'a')).id;
  running = await worker.claimOne();
  jobs.waiting = (await node.submit({ task: 'work', payload: 1, key: 'mine' }, 'a')).id;
  jobs.held = (await node.submit({ task: 'work', payload: 1, hold: true }, 'a')).id;
  jobs.later = (await node.submit({ task: 'work', payload: 1, delay: '1h' }, 'a')).id;
  await node.get('POST', `/v1/jobs/${jobs.running}/logs`, {
    tenant: 'a',
    body: { fence: 1, lines: [{ at: '2030-01-01T00:00:00Z', level: 'info', message: 'secret' }] },
  });
});
afterAll(() => node.stop());

function fenced({ jobId, fence }: Assignment): { jobId: string; fence: number } {
  return { jobId, fence };
}

const asB = (method: string, path: string, body?: unknown): Promise<Answer> =>
  node.ask(method, path, { tenant: 'b', ...(body !== undefined && { body }) });

/** Everything that tenant `a` can see, to be compared before and after. */
async function stateOfA(): Promise<unknown> {
  const read = <T>(path: string) => node.get<T>('GET', path, { tenant: 'a' });
  const { data } = await read<Page<Job>>('/v1/jobs');
  const logs = await read<Page<StoredLogLine>>(`/v1/jobs/${jobs.running}/logs`);
  const queues = await read<Page<QueueView>>('/v1/queues');
  const workers = await read<Page<WorkerView>>('/v1/workers');
  return {
    data,
    logs,
    queues: queues.data.map(({ name, paused, ready, running: busy }) => ({ name, paused, ready, busy })),
    workers: workers.data.map(({ id, state, running: busy }) => ({ id, state, busy })),
  };
}

describe('another tenant', () => {
  it('lists nothing', async () => {
    for (const path of [
      '/v1/jobs',
      '/v1/jobs?state=pending',
      '/v1/jobs?state=running',
      '/v1/jobs?state=failed',
      '/v1/jobs?key=mine',
      '/v1/jobs?task=work',
      `/v1/jobs?worker=${worker.id}`,
      '/v1/queues',
      '/v1/workers',
    ]) {
      expect((await asB('GET', path)).body, path).toMatchObject({ data: [], next: null });
    }
  });

  it('finds, changes and reports nothing, whatever place the job is in', async () => {
    const before = await stateOfA();
    for (const id of Object.values(jobs)) {
      for (const [method, path, body] of [
        ['GET', `/v1/jobs/${id}`],
        ['GET', `/v1/jobs/${id}?wait=1s`],
        ['GET', `/v1/jobs/${id}/logs`],
        ['GET', `/v1/jobs/${id}/why`],
        ['PATCH', `/v1/jobs/${id}`, { priority: 9 }],
        ['POST', `/v1/jobs/${id}/cancel`],
        ['POST', `/v1/jobs/${id}/hold`],
        ['POST', `/v1/jobs/${id}/release`],
        ['POST', `/v1/jobs/${id}/retry`],
      ] as const) {
        expect(await asB(method, path, body), `${method} ${path}`).toMatchObject({
          status: 404,
          body: { code: 'JOB_NOT_FOUND' },
        });
      }
    }
    const { jobId, fence } = running;
    const line = { at: '2030-01-01T00:00:00Z', level: 'info', message: 'forged' };
    for (const [verb, body] of [
      ['complete', { fence, result: 'forged' }],
      ['fail', { fence, error: { message: 'forged' } }],
      ['progress', { fence, progress: 1 }],
      ['logs', { fence, lines: [line] }],
    ] as const) {
      const { status } = await asB('POST', `/v1/jobs/${jobId}/${verb}`, body);
      expect([404, 409], verb).toContain(status);
    }
    expect(await stateOfA()).toEqual(before);
  });

  it('redrives nothing', async () => {
    expect((await asB('POST', '/v1/jobs/redrive', { all: true })).body).toMatchObject({
      matched: 0,
      redriven: 0,
    });
    expect(await node.job(jobs.failed, 'a')).toMatchObject({ state: 'failed' });
  });

  it('pauses no queue', async () => {
    for (const [method, path] of [
      ['GET', '/v1/queues/default'],
      ['POST', '/v1/queues/default/pause'],
      ['POST', '/v1/queues/default/resume'],
    ] as const) {
      expect(await asB(method, path)).toMatchObject({ status: 404, body: { code: 'QUEUE_NOT_FOUND' } });
    }
  });

  it('speaks for no worker', async () => {
    const before = await stateOfA();
    for (const [method, path, body] of [
      ['GET', `/v1/workers/${worker.id}`],
      ['POST', `/v1/workers/${worker.id}/drain`],
      ['DELETE', `/v1/workers/${worker.id}`],
      ['POST', `/v1/workers/${worker.id}/heartbeat`, { epoch: 1, running: [] }],
      ['POST', `/v1/workers/${worker.id}/claim`, { max: 1, wait: '0s' }],
    ] as const) {
      expect(await asB(method, path, body), `${method} ${path}`).toMatchObject({
        status: 404,
        body: { code: 'WORKER_NOT_FOUND' },
      });
    }
    const forged = { ...fenced(running), outcome: 'succeeded', result: 'forged' };
    expect(await asB('POST', `/v1/workers/${worker.id}/report`, { results: [forged] })).toMatchObject({
      body: { accepted: [], stale: [running.jobId] },
    });
    expect(await stateOfA()).toEqual(before);
  });

  it('claims nothing with a worker of the same tasks and queues, and reports nothing with it', async () => {
    const other = await ProtocolWorker.register(node, {}, 'b');
    await other.claimNothing();
    expect(await other.succeed(running, 'forged')).toMatchObject({ accepted: [], stale: [running.jobId] });
    expect(await other.heartbeat([running])).toMatchObject({ stop: [fenced(running)] });
    const mine = await node.submit({ task: 'work' }, 'b');
    expect(await other.claim(10)).toMatchObject([{ jobId: mine.id }]);
    expect(await node.job(jobs.running, 'a')).toMatchObject({ state: 'running', result: null });
  });

  it('cannot fill the log of a job', async () => {
    const lines = Array.from({ length: 1_100 }, () => ({
      at: '2030-01-01T00:00:00Z',
      level: 'info',
      message: 'x'.repeat(950),
    }));
    await asB('POST', `/v1/jobs/${jobs.running}/logs`, { fence: running.fence, lines });
    await node.get('POST', `/v1/jobs/${jobs.running}/logs`, {
      tenant: 'a',
      body: { fence: 1, lines: [{ at: '2030-01-01T00:00:01Z', level: 'info', message: 'still room' }] },
    });
    const logs = await node.get<Page<StoredLogLine>>('GET', `/v1/jobs/${jobs.running}/logs`, { tenant: 'a' });
    expect(logs.data.map(({ message }) => message)).toEqual(['secret', 'still room']);
  });
});

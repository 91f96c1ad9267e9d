import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Gate, Why } from '../../src/core/wire.js';
import { type ApiUser, nodeForTest, TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

/** One node for all but those that stop dispatch or time; each test has a tenant of its own. */
let shared: TestNode;

beforeAll(async () => {
  shared = await TestNode.start();
});
afterAll(() => shared.stop());

function why(node: ApiUser, id: string): Promise<Why> {
  return node.get('GET', `/v1/jobs/${id}/why`);
}

async function gateOf(node: ApiUser, id: string): Promise<Gate> {
  const answer = await why(node, id);
  expect(answer.jobId).toBe(id);
  expect(answer.detail).toMatch(/^[A-Z].*\.$/);
  return answer.gate;
}

it('a job waits for its due time, near or far, with the time that is left', async () => {
  const node = shared.newTenant();
  for (const delay of ['1m', '1h']) {
    const { id } = await node.submit({ task: 'work', payload: 1, delay });
    const answer = await why(node, id);
    expect(answer).toMatchObject({ state: 'pending', gate: 'due-time' });
    expect(answer.figures.dueInMs).toBeGreaterThan(50_000);
  }
});

it('a job on hold says so, even when it is not due either', async () => {
  const node = shared.newTenant();
  const { id } = await node.submit({ task: 'work', payload: 1, hold: true, delay: '1h' });
  expect(await gateOf(node, id)).toBe('hold');
});

it('a due job names the pause that keeps it, the larger first', async () => {
  const node = await nodeForTest();
  const { id } = await node.submit({ task: 'work' });
  await node.get('POST', '/v1/queues/default/pause');
  expect(await gateOf(node, id)).toBe('queue-paused');
  await node.get('POST', '/v1/cluster/pause');
  expect(await gateOf(node, id)).toBe('cluster-paused');
});

it('a job without a worker that could do it says what is missing', async () => {
  const node = shared.newTenant();
  const { id } = await node.submit({ task: 'work', requires: { region: 'eu' } });
  expect(await why(node, id)).toMatchObject({
    gate: 'no-fitting-worker',
    detail: expect.stringMatching(/queue default.*handler work.*region=eu/),
    figures: { workers: 0, workersOfQueue: 0, fittingWorkers: 0 },
  });
  await ProtocolWorker.register(node, { queues: ['other'] });
  await ProtocolWorker.register(node);
  expect(await why(node, id)).toMatchObject({
    gate: 'no-fitting-worker',
    figures: { workers: 2, workersOfQueue: 1, fittingWorkers: 0 },
  });
});

it('a job waits for a free slot, then is running, then has ended', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { slots: 1 });
  const first = await node.submit({ task: 'work' });
  const second = await node.submit({ task: 'work' });
  const running = await worker.claimOne();
  expect(running.jobId).toBe(first.id);
  expect(await why(node, first.id)).toMatchObject({
    state: 'running',
    gate: 'not-waiting',
    figures: { worker: worker.id },
  });
  expect(await why(node, second.id)).toMatchObject({
    gate: 'no-free-slot',
    figures: { slots: 1, freeSlots: 0, readyInQueue: 1 },
  });
  await worker.succeed(running);
  expect(await why(node, first.id)).toMatchObject({
    state: 'succeeded',
    gate: 'not-waiting',
    detail: expect.stringContaining('succeeded'),
  });
});

it('a job that a fitting worker with free slots has not asked for comes behind others', async () => {
  const node = shared.newTenant();
  await ProtocolWorker.register(node, { slots: 3 });
  const first = await node.submit({ task: 'work' });
  const { id } = await node.submit({ task: 'work' });
  // The leader has taken up whatever it was asked about.
  await why(node, first.id);
  expect(await why(node, id)).toMatchObject({
    gate: 'behind-others',
    figures: { freeSlots: 3, readyInQueue: 2 },
  });
});

it('a job whose claim is on its way to the database is being handed over', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node);
  // Nothing can be claimed while another session keeps the table of claims to itself.
  await withClient(shared.database.url, async (client) => {
    await client.query('BEGIN; LOCK TABLE punctual.claims IN SHARE ROW EXCLUSIVE MODE');
    const claim = worker.claimOne();
    const { id } = await node.submit({ task: 'work' });
    await expect.poll(() => gateOf(node, id)).toBe('being-claimed');
    await client.query('ROLLBACK');
    expect(await claim).toMatchObject({ jobId: id });
  });
});

it('a job that was submitted in a transaction is about to be admitted', async () => {
  // The database's clock is ahead of one that stands still, so the job's moment has not come yet.
  const clock = new TestClock();
  const node = await nodeForTest({ clock });
  const id = await withClient(node.database.url, async (client) => {
    const { rows } = await client.query(
      `SELECT punctual.submit_job('default', '{"task": "work", "payload": 1}') AS id`,
    );
    return rows[0].id as string;
  });
  expect(await gateOf(node, id)).toBe('not-admitted');
  clock.advance(60_000);
  await expect.poll(() => gateOf(node, id), { timeout: 5_000 }).toBe('no-fitting-worker');
});

it('a job of another tenant, or none at all, is not found', async () => {
  const node = shared.newTenant();
  const { id } = await node.submit({ task: 'work' });
  expect(await node.ask('GET', `/v1/jobs/${id}/why`, { tenant: 'other' })).toMatchObject({
    status: 404,
    body: { code: 'JOB_NOT_FOUND' },
  });
});

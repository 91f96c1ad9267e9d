import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Assignment } from '../../src/core/wire.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

/** A quarter of what one answer takes, so that every answer brings four, and five where the last goes beyond. */
const LARGE = 'x'.repeat(250 * 1_024);
const MOST_AT_ONCE = 5;
const COUNT = 20;

const SLOW_WORKERS = { heartbeatInterval: '1s', workerTimeout: '1h' };

async function submitLarge(node: TestNode, change: Record<string, unknown> = {}): Promise<void> {
  const jobs = Array.from({ length: COUNT }, (_, i) => ({ task: 'work', payload: [i, LARGE], ...change }));
  await node.get('POST', '/v1/jobs/bulk', { body: { jobs } });
}

/** Claims as much as there is room for until so many jobs have come; none of the answers may be large. */
async function claimAll(worker: ProtocolWorker, count = COUNT): Promise<Assignment[]> {
  const all: Assignment[] = [];
  while (all.length < count) {
    const jobs = await worker.claimSilently(100);
    expect(jobs.length).toBeLessThanOrEqual(MOST_AT_ONCE);
    all.push(...jobs);
  }
  expect(all).toHaveLength(count);
  return all;
}

const numbersOf = (jobs: readonly Assignment[]) => jobs.map((job) => (job.payload as [number])[0]);
const ALL = Array.from({ length: COUNT }, (_, i) => i);

it('large jobs are handed over a few at a time, in order, and offered again likewise', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock, settings: SLOW_WORKERS });
  const worker = await ProtocolWorker.register(node, { slots: 100 });
  await submitLarge(node);
  expect(numbersOf(await claimAll(worker))).toEqual(ALL);
  clock.advance(2_001);
  const again = await claimAll(worker);
  expect(numbersOf(again).sort((a, b) => a - b)).toEqual(ALL);
  expect(again.every((job) => (job.payload as [number, string])[1] === LARGE)).toBe(true);
  // What has been offered again just now is not offered once more.
  expect(await worker.claimSilently(100, '20ms')).toEqual([]);
});

it('a new leader offers large jobs again a few at a time, with all that they came with', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const first = await nodeForTest({ database, settings: SLOW_WORKERS });
  const worker = await ProtocolWorker.register(first, { slots: 100 });
  await submitLarge(first);
  const target = { type: 'handler', name: 'work' };
  const jobs = Array.from({ length: 3 }, (_, i) => ({ target, payload: [COUNT + i] }));
  await first.get('POST', '/v1/jobs/bulk', { body: { jobs } });
  // Large targets exist in databases only so far: what is offered again is bounded by them, too.
  await withClient(database.url, (client) =>
    client.query(
      `UPDATE punctual.jobs SET target = json_build_object('type', 'handler', 'name', 'work', 'body', $1::text),
         size_kib = 250, edited = true
       WHERE task IS NULL`,
      [LARGE],
    ),
  );
  await claimAll(worker, COUNT + 3);
  await first.node.stop();
  await nodeForTest({ database, settings: { ...SLOW_WORKERS, port: first.node.port } });
  const again = await claimAll(worker, COUNT + 3);
  expect(numbersOf(again).sort((a, b) => a - b)).toEqual([...ALL, COUNT, COUNT + 1, COUNT + 2]);
  for (const job of again.filter(({ task }) => task === null))
    expect(job.target).toMatchObject({ body: LARGE });
});

it('one who waits for work is offered again what was read for it meanwhile', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock, settings: SLOW_WORKERS });
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', payload: LARGE });
  await worker.claimSilently();
  const waiting = worker.claimSilently(10);
  // The pass over the sessions looks at who waits; time stands still until it is let on.
  const timer = setInterval(() => clock.advance(2_001), 50);
  onTestFinished(() => clearInterval(timer));
  expect(await waiting).toMatchObject([{ jobId: id, fence: 1, payload: LARGE }]);
});

it('the size of a job is known whichever way it came, and however it was changed', async () => {
  const node = await nodeForTest();
  const client = new pg.Client(node.database.url);
  await client.connect();
  onTestFinished(() => client.end());
  const sizes = async (id: string) => {
    const places = 'SELECT id, size_kib FROM punctual.jobs UNION ALL SELECT id, size_kib FROM punctual.later';
    const { rows } = await client.query(`SELECT size_kib FROM (${places}) p WHERE id = $1`, [id]);
    return rows.map((row) => row.size_kib);
  };
  const twoBytes = 'é'.repeat(1_024);
  const { id } = await node.submit({ task: 'work', payload: twoBytes });
  expect(await sizes(id)).toEqual([2]);
  const change = (body: unknown) => node.get('PATCH', `/v1/jobs/${id}`, { body });
  await change({ payload: LARGE });
  expect(await sizes(id)).toEqual([250]);
  await change({ runAt: new Date(Date.now() + 86_400_000).toISOString() });
  expect(await sizes(id)).toEqual([250]);
  await change({ payload: twoBytes });
  expect(await sizes(id)).toEqual([2]);
  await change({ runAt: new Date(Date.now() + 1_000).toISOString(), payload: LARGE });
  expect(await sizes(id)).toEqual([250]);
  await node.get('POST', `/v1/jobs/${id}/hold`);
  expect(await sizes(id)).toEqual([250]);
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  await node.get('POST', `/v1/jobs/${id}/retry`);
  expect(await sizes(id)).toEqual([250]);

  const submission = JSON.stringify({ task: 'work', payload: LARGE, queue: 'q' });
  const { rows } = await client.query('SELECT punctual.submit_job($1, $2) AS id', ['default', submission]);
  await expect.poll(() => sizes(rows[0].id), { timeout: 10_000 }).toEqual([250]);
  await node.get('POST', '/v1/schedules', {
    body: { name: 's', every: '1h', task: 'work', payload: LARGE, queue: 'q' },
  });
  const run = await node.get<{ id: string }>('POST', '/v1/schedules/s/run');
  expect(await sizes(run.id)).toEqual([250]);
});

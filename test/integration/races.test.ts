import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

/** Holds the row of a live job, so that statements about it wait until the answer is called. */
async function holdRow(node: TestNode, id: string): Promise<() => Promise<void>> {
  const client = new pg.Client(node.database.url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM punctual.jobs WHERE id = $1 FOR UPDATE', [id]);
  return async () => {
    await client.query('COMMIT');
  };
}

/** Resolves when a statement waits for a row that somebody else holds. */
async function somebodyWaits(node: TestNode): Promise<void> {
  const client = new pg.Client(node.database.url);
  await client.connect();
  try {
    await expect
      .poll(
        async () =>
          (
            await client.query(
              `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
            )
          ).rows[0].n,
        { timeout: 5_000, interval: 10 },
      )
      .toBeGreaterThan(0);
  } finally {
    await client.end();
  }
}

it('a job that is being cancelled is not handed to a worker that asks meanwhile', async () => {
  const node = await nodeForTest();
  const { id } = await node.submit({ task: 'work' });
  const letGo = await holdRow(node, id);
  const cancelled = node.get<Job>('POST', `/v1/jobs/${id}/cancel`);
  await somebodyWaits(node);
  const worker = await ProtocolWorker.register(node);
  const claimed = worker.claimSilently(1, '1s');
  await letGo();
  expect((await cancelled).state).toBe('cancelled');
  expect(await claimed).toEqual([]);
  expect(await node.job(id)).toMatchObject({ state: 'cancelled', attempts: [] });
});

it('an at-most-once job that is put on hold while a worker asks starts once, after its release', async () => {
  const node = await nodeForTest();
  const { id } = await node.submit({ task: 'work', delivery: 'at-most-once' });
  const letGo = await holdRow(node, id);
  const held = node.get<Job>('POST', `/v1/jobs/${id}/hold`);
  await somebodyWaits(node);
  const worker = await ProtocolWorker.register(node);
  const early = worker.claimSilently(1, '1s');
  await letGo();
  expect((await held).hold).toBe(true);
  expect(await early).toEqual([]);
  await node.get('POST', `/v1/jobs/${id}/release`);
  const job = await worker.claimOne();
  expect(job).toMatchObject({ jobId: id, fence: 1 });
  expect((await worker.succeed(job)).accepted).toEqual([id]);
});

it('a cancel of a running job holds when its attempt then fails', async () => {
  const node = await nodeForTest();
  const { id } = await node.submit({ task: 'work' });
  const worker = await ProtocolWorker.register(node);
  const job = await worker.claimOne();
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  await worker.fail(job);
  expect(await node.job(id)).toMatchObject({ state: 'cancelled', attempts: [{ outcome: 'failed' }] });
});

it('a cancel of a running job holds when its worker dies, also under the next leader', async () => {
  const clock = new TestClock();
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const node = await nodeForTest({ clock, database });
  const { id } = await node.submit({ task: 'work' });
  const worker = await ProtocolWorker.register(node);
  await worker.claim();
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  const next = await nodeForTest({ clock, database });
  await node.stop();
  await ProtocolWorker.register(next);
  clock.advance(30_000);
  expect(await next.ended(id)).toMatchObject({ state: 'cancelled', attempts: [{ outcome: 'lost' }] });
});

it('a worker that leaves in order loses what it had shown to have, and gives back the rest', async () => {
  const node = await nodeForTest();
  const begun = await node.submit({ task: 'work', delivery: 'at-most-once' });
  const worker = await ProtocolWorker.register(node);
  await worker.claim();
  const untouched = await node.submit({ task: 'work', delivery: 'at-most-once' });
  expect(await worker.claimSilently()).toHaveLength(1);
  await node.get('DELETE', `/v1/workers/${worker.id}`, { body: { settled: true } });
  expect(await node.ended(begun.id)).toMatchObject({ state: 'failed', error: { code: 'LOST' } });
  const other = await ProtocolWorker.register(node);
  expect(await other.claim()).toMatchObject([{ jobId: untouched.id, fence: 2 }]);
});

it('a stopped attempt of a job that nobody cancelled is tried again', async () => {
  const node = await nodeForTest();
  const { id } = await node.submit({ task: 'work' });
  const worker = await ProtocolWorker.register(node);
  const { fence } = await worker.claimOne();
  await worker.report({ jobId: id, fence, outcome: 'cancelled' });
  expect(await worker.claim()).toMatchObject([{ jobId: id, fence: 2 }]);
});

it('a worker cannot push the epoch beyond anything there has been', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node);
  const path = `/v1/workers/${worker.id}/heartbeat`;
  const answer = await node.ask('POST', path, { body: { epoch: 9_007_199_254_740_991, running: [] } });
  expect(answer.status).toBe(422);
  expect((await node.ask('POST', path, { body: { epoch: worker.welcome.epoch, running: [] } })).status).toBe(
    200,
  );
});

import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { task } from '../../src/core/task.js';
import type { ClusterView } from '../../src/core/wire.js';
import { countStatements } from '../count-statements.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

const STRANGER = '0198c0de-0000-7000-8000-00000000beef';
/** So long a term lasts at least before a worker's word ends it. */
const MIN_TERM_MS = 10_000;

async function query(database: TestDatabase, text: string, values: unknown[] = []): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}

const epochOf = async (node: TestNode) =>
  (await node.get<ClusterView>('GET', '/v1/cluster')).shards[0]!.epoch;

const beat = (node: TestNode, workerId: string, epoch: number) =>
  node.ask('POST', `/v1/workers/${workerId}/heartbeat`, { body: { epoch, running: [] } });

it('a worker that nobody knows cannot end a term by naming a later epoch', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock });
  const worker = await ProtocolWorker.register(node);
  clock.advance(MIN_TERM_MS + 1);
  const epoch = await epochOf(node);
  expect(await beat(node, STRANGER, epoch + 1)).toMatchObject({
    status: 404,
    body: { code: 'WORKER_NOT_FOUND' },
  });
  // Nor can somebody else's tenant through the id of a worker that is known.
  const other = { body: { epoch: epoch + 1, running: [] }, tenant: 'other' };
  expect((await node.ask('POST', `/v1/workers/${worker.id}/heartbeat`, other)).status).toBe(404);
  await worker.heartbeat();
  expect(await epochOf(node)).toBe(epoch);
});

it('a leader that was replaced without knowing it tells no worker of a later term to register anew', async () => {
  const node = await nodeForTest();
  await node.get('GET', '/v1/workers');
  const epoch = await epochOf(node);
  // It lasts, or the node would take the next term before a slow machine gets to ask.
  await query(
    node.database,
    `UPDATE punctual.leases SET epoch = epoch + 1, holder = 'the next one', expires_at = now() + interval '1 hour'`,
  );
  expect(await beat(node, STRANGER, epoch + 1)).toMatchObject({ status: 503, body: { code: 'NO_LEADER' } });
});

it('heartbeats that name a later epoch share a look at the lease, however many there are', async () => {
  const BEATS = 100;
  const node = await nodeForTest();
  await node.get('GET', '/v1/workers');
  const epoch = await epochOf(node);
  const counts = countStatements();
  const client = new pg.Client({ connectionString: node.database.url });
  await client.connect();
  onTestFinished(() => client.end());
  // The first look waits for this lock until all of the others have come.
  await client.query('BEGIN; LOCK TABLE punctual.leases');
  const beats = Array.from({ length: BEATS }, () => beat(node, STRANGER, epoch + 1));
  for (let asked = 0; asked < 20; asked++) await node.ask('GET', '/healthz');
  await client.query('COMMIT');
  expect(new Set((await Promise.all(beats)).map(({ status }) => status))).toEqual(new Set([404]));
  expect(counts.get('look-at-lease')).toBeLessThan(BEATS / 5);
});

it('a worker that a promoted replica has lost, with the terms it had seen, is back after one more term', async () => {
  const [before, after] = [await createTestDatabase(), await createTestDatabase()];
  onTestFinished(() => Promise.all([before.drop(), after.drop()]).then(() => undefined), 30_000);
  const settings = { heartbeatInterval: '100ms', workerTimeout: '30s' };
  await query(
    before,
    `INSERT INTO punctual.leases (shard, epoch, holder, holder_url, expires_at)
    VALUES (0, 50, '', '', 'epoch')`,
  );
  const first = await nodeForTest({ database: before, settings });
  const worker = first.connect().worker([task('work', {}, async () => 'done')], { stopGraceMs: 50 });
  await worker.start();
  onTestFinished(() => worker.stop(), 30_000);
  expect(await epochOf(first)).toBe(51);
  const { port } = first.node;
  const keys = await query(before, 'SELECT id, name, hash, operator, created_at FROM punctual.api_keys');
  for (const key of keys.rows) {
    const add =
      'INSERT INTO punctual.api_keys (id, name, hash, operator, created_at) VALUES ($1, $2, $3, $4, $5)';
    await query(after, add, Object.values(key));
  }
  await first.node.stop();
  const clock = new TestClock();
  const second = await nodeForTest({ database: after, clock, settings: { ...settings, port } });
  await second.get('GET', '/v1/workers');
  expect(await epochOf(second)).toBe(1);
  clock.advance(MIN_TERM_MS + 1);
  await vi.waitFor(async () => expect(await epochOf(second)).toBeGreaterThan(51), { timeout: 10_000 });
  const { id } = await second.submit({ task: 'work' });
  expect((await second.ended(id)).result).toBe('done');
}, 30_000);

import { expect, it } from 'vitest';
import { createTestDatabase } from '../../database.js';
import { type ApiUser, nodeForTest, TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';

/** More than a transaction that commits late can lie behind the newest id. */
const NAMES_BETWEEN = 3_000;

/** Everything that a worker for all queues gets, until it has this many jobs. */
async function claimAll(worker: ProtocolWorker, count: number): Promise<Set<string>> {
  const ids = new Set<string>();
  while (ids.size < count) {
    const jobs = await worker.claimSilently(1_000);
    for (const { jobId } of jobs) ids.add(jobId);
    await worker.report(
      ...jobs.map(({ jobId, fence }) => ({ jobId, fence, outcome: 'succeeded' as const, result: null })),
    );
  }
  return ids;
}

it('a queue and needs whose ids lie far behind those that committed before them are met all the same', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, {
    queues: ['*'],
    slots: 10_000,
    labels: { region: 'eu' },
  });
  await withClient(node.database.url, async (late) => {
    await late.query('BEGIN');
    await late.query(`INSERT INTO punctual.queues (tenant, name, created_at) VALUES ('default', 'early', 0)`);
    await late.query(
      `INSERT INTO punctual.needs (signature, tenant, target, handler, labels)
       VALUES (sha256(convert_to('["default","handler","work","[[\\"region\\",\\"eu\\"]]"]', 'UTF8')), 'default', 'handler', 'work', '[["region","eu"]]')`,
    );
    await withClient(node.database.url, async (other) => {
      await other.query(
        `INSERT INTO punctual.queues (tenant, name, created_at) SELECT 'default', 'between-' || n, 0 FROM generate_series(1, $1::int) n`,
        [NAMES_BETWEEN],
      );
      await other.query(
        `INSERT INTO punctual.needs (signature, tenant, target, handler, labels)
         SELECT sha256(n::text::bytea), 'default', 'handler', 'h' || n, '' FROM generate_series(1, $1::int) n`,
        [NAMES_BETWEEN],
      );
    });
    await node.submit({ task: 'work', queue: 'newest' });
    await worker.succeed(await worker.claimOne());
    await late.query('COMMIT');
  });
  const { id } = await node.submit({ task: 'work', queue: 'early', requires: { region: 'eu' } });
  expect((await worker.claimOne()).jobId).toBe(id);
});

it('parallel bulks at two nodes, each job in a new queue, all start', async () => {
  const first = await nodeForTest();
  const second = await TestNode.start({ database: first.database });
  first.onStop(() => second.stop());
  const worker = await ProtocolWorker.register(first, { queues: ['*'], slots: 10_000 });
  const bulk = (node: ApiUser, bulk: number) =>
    node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
      body: {
        jobs: Array.from({ length: 700 }, (_, n) => ({ task: 'work', queue: `q-${bulk}-${n}` })),
      },
    });
  const bulks = await Promise.all([0, 1, 2, 3, 4, 5].map((n) => bulk(n % 2 === 0 ? first : second, n)));
  const stored = bulks.flatMap(({ ids }) => ids);
  expect(await claimAll(worker, stored.length)).toEqual(new Set(stored));
});

it('a takeover reads no names but those of jobs that are there', async () => {
  const { database, stop } = await countedNames(20_000);
  const node = await TestNode.start({ database });
  const worker = await ProtocolWorker.register(node, { queues: ['*'] });
  await node.submit({ task: 'work' });
  await worker.succeed(await worker.claimOne());
  // Sessions that end put down what they have read.
  await node.stop();
  const read = await withClient(database.url, async (client) => {
    const { rows } = await client.query(
      `SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int AS read FROM pg_stat_user_tables
       WHERE schemaname = 'punctual' AND relname IN ('queues', 'needs')`,
    );
    return rows[0].read as number;
  });
  expect(read).toBeLessThan(1_000);
  await stop();
});

/** A database with many names that no job uses, and statistics that begin afterwards. */
async function countedNames(count: number) {
  const database = await createTestDatabase();
  await withClient(database.url, async (client) => {
    await client.query(
      `INSERT INTO punctual.queues (tenant, name, created_at) SELECT 'default', 'q' || n, 0 FROM generate_series(1, $1::int) n`,
      [count],
    );
    await client.query(
      `INSERT INTO punctual.needs (signature, tenant, target, handler, labels)
       SELECT sha256(n::text::bytea), 'default', 'handler', 'h' || n, '' FROM generate_series(1, $1::int) n`,
      [count],
    );
  });
  await withClient(database.administratorUrl, (client) => client.query('SELECT pg_stat_reset()'));
  return { database, stop: () => database.drop() };
}

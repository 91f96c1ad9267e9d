import { expect, it, onTestFinished } from 'vitest';
import { task } from '../../src/core/task.js';
import { openConnection, openPool } from '../../src/store/database.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { nodeForTest } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';

/** A database whose sessions are serializable unless they say otherwise. */
async function serializableDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const name = new URL(database.url).pathname.slice(1);
  await withClient(database.url, (client) =>
    client.query(`ALTER DATABASE ${name} SET default_transaction_isolation = serializable`),
  );
  return database;
}

const CONNECTIONS = {
  applicationName: 'punctual test',
  hot: true,
  statementTimeoutMs: 5_000,
  lockTimeoutMs: 5_000,
  idleInTransactionTimeoutMs: 5_000,
};

it('every connection is READ COMMITTED, whatever the database is set to', async () => {
  const { url } = await serializableDatabase();
  const pool = openPool(url, { ...CONNECTIONS, max: 1 });
  const connection = await openConnection(url, CONNECTIONS);
  const show = 'SHOW transaction_isolation';
  const shown = [(await pool.query(show)).rows[0], (await connection.query(show)).rows[0]];
  await Promise.all([pool.end(), connection.end()]);
  expect(shown).toEqual(Array(2).fill({ transaction_isolation: 'read committed' }));
});

it('a node on a database that is serializable by default takes the same keys side by side, and runs them', async () => {
  const node = await nodeForTest({ database: await serializableDatabase() });
  await node.work([task('double', (n: number) => n * 2)]);
  const jobs = Array.from({ length: 100 }, (_, n) => ({ task: 'double', payload: n, key: `key-${n}` }));
  const bulks = await Promise.all(
    Array.from({ length: 10 }, () =>
      node.ask<{ ids: string[] }>('POST', '/v1/jobs/bulk', { body: { jobs } }),
    ),
  );
  expect(bulks.map(({ status }) => status)).toEqual(Array(10).fill(201));
  const ids = [...new Set(bulks.flatMap(({ body }) => body.ids))];
  expect(ids).toHaveLength(jobs.length);
  const ended = await Promise.all(ids.map((id) => node.ended(id)));
  expect(new Set(ended.map((job) => job.state))).toEqual(new Set(['succeeded']));
});

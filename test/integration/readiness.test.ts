import pg from 'pg';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { nodeForTest } from '../node-for-tests.js';

it('a node whose lists are slow is ready all the same', async () => {
  const node = await nodeForTest();
  await node.get('GET', '/v1/workers');
  const other = new pg.Client({ connectionString: node.database.url });
  await other.connect();
  onTestFinished(() => other.end());
  await other.query('BEGIN');
  await other.query('LOCK TABLE punctual.job_history IN ACCESS EXCLUSIVE MODE');
  const lists = Array.from({ length: 25 }, () => node.ask('GET', '/v1/jobs?state=failed'));
  const begun = performance.now();
  expect(await node.ask('GET', '/readyz?verbose')).toMatchObject({
    status: 200,
    body: { ok: true, checks: { database: { ok: true }, leader: { ok: true } } },
  });
  expect(performance.now() - begun).toBeLessThan(1_000);
  await other.query('ROLLBACK');
  await Promise.all(lists);
});

it('a node that has lost its database is not ready, and is so again when the database is back', async () => {
  const node = await nodeForTest();
  await node.get('GET', '/v1/workers');
  const name = new URL(node.database.url).pathname.slice(1);
  const admin = new pg.Client({ connectionString: inject('serverUrl') });
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
  await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
  await vi.waitFor(async () => expect((await node.ask('GET', '/readyz')).status).toBe(503), {
    timeout: 8_000,
  });
  await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
  await vi.waitFor(async () => expect((await node.ask('GET', '/readyz')).status).toBe(200), {
    timeout: 8_000,
  });
}, 20_000);

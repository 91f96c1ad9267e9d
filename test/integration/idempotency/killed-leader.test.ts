import { rm } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { ClusterView, StatsView } from '../../../src/core/wire.js';
import { createOperatorKey } from '../../../src/store/operator-key.js';
import { createTestDatabase } from '../../database.js';
import { withClient } from '../../postgres-client.js';
import { PunctualProcess } from '../../punctual-process.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { until } from '../store/test-shard.js';

it('a request whose leader is killed in the middle takes effect once, at the next leader', async () => {
  const [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  onTestFinished(async () => {
    await database.drop();
    await rm(folder, { recursive: true });
  });
  const { key } = await createOperatorKey(database.url, 'tester');
  const start = async () => {
    const environment = { PUNCTUAL_DATABASE_URL: database.url };
    const server = new PunctualProcess(['server', '--port', '0'], { folder, environment });
    onTestFinished(async () => void (await server.kill('SIGKILL')));
    const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
    const ask = async <T>(
      method: string,
      path: string,
      headers: Record<string, string> = {},
      body?: unknown,
    ) => {
      const answer = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: answer.status, headers: answer.headers, body: (await answer.json()) as T };
    };
    return { server, url, ask };
  };
  const leader = await start();
  await until(async () => {
    const { body } = await leader.ask<ClusterView>('GET', '/v1/cluster');
    return body.shards[0]!.leader !== null;
  });
  const follower = await start();
  const { id } = (await leader.ask<Job>('POST', '/v1/jobs', {}, { task: 'work' })).body;
  await leader.ask('POST', `/v1/jobs/${id}/cancel`);

  const retry = () => follower.ask<Job>('POST', `/v1/jobs/${id}/retry`, { 'idempotency-key': 'killed' });
  await withClient(database.url, async (client) => {
    // The leader has moved the job back and waits to store the answer, when it is killed.
    await client.query('BEGIN');
    await client.query('LOCK TABLE punctual.idempotency IN SHARE MODE');
    const answered = retry();
    await until(async () => {
      const { rows } = await client.query(
        `SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
         WHERE NOT l.granted AND c.relname = 'idempotency'
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      return rows.length > 0;
    });
    await leader.server.kill('SIGKILL');
    await client.query('ROLLBACK');
    // The follower waits for the next leader, which it becomes itself, and makes the request there.
    const { status, body } = await answered;
    expect([status, body.id, body.state]).toEqual([200, id, 'pending']);
  });
  const again = await retry();
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
  const { jobsRetried } = (await follower.ask<StatsView>('GET', '/v1/stats')).body;
  expect(jobsRetried).toBe(1);
});

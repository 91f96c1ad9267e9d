import { describe, expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { BulkAnswer, ClusterView, Page } from '../../../src/core/wire.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { LostCommits } from '../../fault/rig/postgres-tap.js';
import { TcpProxy } from '../../fault/rig/tcp-proxy.js';
import { type Answer, nodeForTest, type TestNode } from '../../node-for-tests.js';
import { countPlaces, withClient } from '../../postgres-client.js';
import { until } from '../store/test-shard.js';

const withKey = (key: string) => ({ 'idempotency-key': key });

/** A node whose way to the database can lose the answers to commits. */
async function nodeOverProxy(): Promise<{ node: TestNode; database: TestDatabase; commits: LostCommits }> {
  const database = await createTestDatabase();
  const commits = new LostCommits();
  const direct = new URL(database.url);
  const proxy = await TcpProxy.open(() => Number(direct.port), commits.open);
  onTestFinished(() => proxy.close());
  onTestFinished(() => database.drop());
  const throughProxy = new URL(database.url);
  throughProxy.hostname = '127.0.0.1';
  throughProxy.port = String(proxy.port);
  const node = await nodeForTest({ database, settings: { databaseUrl: throughProxy.href } });
  return { node, database, commits };
}

/** Repeats a request as a client does that goes on until it is answered. */
async function persist<T>(send: () => Promise<Answer<T>>): Promise<Answer<T>> {
  for (let tries = 0; tries < 100; tries++) {
    const answer = await send();
    const isPassing =
      answer.status === 503 || (answer.body as { code?: string }).code === 'IDEMPOTENCY_IN_FLIGHT';
    if (!isPassing) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('not answered');
}

describe('after the answer to the commit was lost, the same request is answered from it', () => {
  it('for a submission', async () => {
    const { node, commits } = await nodeOverProxy();
    let lost = 0;
    commits.loseNext(['keep-answer'], () => (lost += 1));
    const send = () =>
      node.ask<Job>('POST', '/v1/jobs', { body: { task: 'work' }, headers: withKey('lost') });
    const answer = await persist(send);
    expect(lost).toBe(1);
    expect(answer.status).toBe(201);
    expect(answer.headers.get('idempotency-replayed')).toBe('true');
    expect(await countPlaces(node.database.url)).toMatchObject({ live: 1 });
    expect(await node.job(answer.body.id)).toMatchObject({ state: 'pending' });
  });

  it('for a bulk', async () => {
    const { node, commits } = await nodeOverProxy();
    commits.loseNext(['keep-answer'], () => undefined);
    const jobs = [{ task: 'work' }, { task: 'work', delay: '1d' }, { task: 'work', key: 'k' }];
    const send = () =>
      node.ask<BulkAnswer>('POST', '/v1/jobs/bulk', { body: { jobs }, headers: withKey('lost') });
    const { status, body } = await persist(send);
    expect([status, body.ids.length]).toEqual([201, 3]);
    expect(await countPlaces(node.database.url)).toMatchObject({ live: 2, later: 1, keys: 1 });
  });

  it('for a change that only the leader makes, which then begins a new term', async () => {
    const { node, commits } = await nodeOverProxy();
    await node.get('POST', '/v1/schedules', { body: { name: 'nightly', task: 'work', cron: '0 3 * * *' } });
    const epoch = async () => (await node.get<ClusterView>('GET', '/v1/cluster')).shards[0]!.epoch;
    const before = await epoch();
    commits.loseNext(['keep-answer'], () => undefined);
    const send = () => node.ask<Job>('POST', '/v1/schedules/nightly/run', { headers: withKey('lost') });
    const { status, body } = await persist(send);
    expect(status).toBe(201);
    await until(async () => (await epoch()) > before);
    const { data } = await node.get<Page<Job>>('GET', '/v1/jobs');
    expect(data.map(({ id }) => id)).toEqual([body.id]);
  });

  it('for a pause, which could not be made a second time', async () => {
    const { node, commits } = await nodeOverProxy();
    await node.submit({ task: 'work' });
    commits.loseNext(['keep-answer'], () => undefined);
    const send = () => node.ask('POST', '/v1/queues/default/pause', { headers: withKey('lost') });
    expect(await persist(send)).toMatchObject({ status: 200, body: { name: 'default', paused: true } });
  });
});

it('a request that waits on another connection beyond its patience is told that the first is in flight', async () => {
  const node = await nodeForTest();
  const send = () => node.ask<Job>('POST', '/v1/jobs', { body: { task: 'work' }, headers: withKey('slow') });
  await withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    await client.query(
      `INSERT INTO punctual.idempotency (tenant, key, request, status, created_at)
       VALUES ('default', 'slow', '', 201, $1)`,
      [Date.now()],
    );
    const answer = await send();
    expect(answer).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_IN_FLIGHT' } });
    expect(answer.headers.get('retry-after')).toBe('1');
    await client.query('ROLLBACK');
  });
  expect(await countPlaces(node.database.url)).toMatchObject({ live: 0 });
  expect((await send()).status).toBe(201);
  await until(async () => (await countPlaces(node.database.url)).live === 1);
});

it('a leader that goes away while a request is under way does it with the next one, once', async () => {
  const first = await nodeForTest();
  const second = await nodeForTest({ database: first.database });
  const { id } = await first.submit({ task: 'work' });
  await first.get('POST', `/v1/jobs/${id}/cancel`);
  // Forwarded by the second node; the first one stops meanwhile, before or after it has done it.
  const retried = persist(() =>
    second.ask<Job>('POST', `/v1/jobs/${id}/retry`, { headers: withKey('moved') }),
  );
  await first.node.stop();
  expect(await retried).toMatchObject({ status: 200, body: { id, state: 'pending' } });
  const { body } = await persist(() =>
    second.ask<Job>('POST', `/v1/jobs/${id}/retry`, { headers: withKey('moved') }),
  );
  expect(body).toMatchObject({ id, state: 'pending' });
});

import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { parseSubmission } from '../../../src/core/submission.js';
import type { LeaderState } from '../../../src/dispatch/leader-state.js';
import { addUsage, addUsageOfOne, forgetUsage } from '../../../src/store/tenant-usage.js';
import { createTestDatabase, type TestDatabase } from '../../database.js';
import { type Answer, nodeForTest, type TestNode } from '../../node-for-tests.js';
import { lockWaits, withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';

/** Two nodes of one cluster; the first leads. */
async function twoNodes(): Promise<[TestNode, TestNode]> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const first = await nodeForTest({ database });
  await vi.waitFor(() => expect(first.node.leads()).toBe(true));
  return [first, await nodeForTest({ database })];
}

/** Gives a tenant quotas before any node knows it, so that they hold at once. */
async function limited(node: TestNode, quotas: Record<string, number>, id = 'acme'): Promise<void> {
  await node.get('POST', '/v1/tenants', { body: { id, quotas } });
}

const submit = (node: TestNode, body: Record<string, unknown> = {}, tenant = 'acme') =>
  node.ask('POST', '/v1/jobs', { body: { task: 'work', ...body }, tenant });

const bulk = (node: TestNode, count: number, body: Record<string, unknown> = {}, tenant = 'acme') =>
  node.ask<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
    body: { jobs: Array.from({ length: count }, () => ({ task: 'work', ...body })) },
    tenant,
  });

async function stored(node: TestNode, tenant = 'acme'): Promise<{ live: number; later: number }> {
  const { rows } = await node.node.context.shards[0].pool.query(
    `SELECT (SELECT count(*)::int FROM punctual.jobs WHERE tenant = $1) AS live,
      (SELECT count(*)::int FROM punctual.later WHERE tenant = $1) AS later`,
    [tenant],
  );
  return rows[0] as { live: number; later: number };
}

function refused(answer: Answer, quota: string, limit: number): void {
  expect(answer).toMatchObject({ status: 429, body: { code: 'QUOTA_EXCEEDED', quota, limit } });
}

it('a crowd of submissions at two nodes never goes beyond the quota of live jobs', async () => {
  const nodes = await twoNodes();
  await limited(nodes[0], { liveJobs: 100 });
  const answers = await Promise.all(
    Array.from({ length: 300 }, (_, i) => submit(nodes[i % 2]!, i % 3 === 0 ? { key: `k${i}` } : {})),
  );
  const taken = answers.filter(({ status }) => status === 201);
  const others = answers.filter(({ status }) => status !== 201);
  expect(taken).toHaveLength(100);
  for (const answer of others) {
    refused(answer, 'liveJobs', 100);
    expect(answer.headers.get('retry-after')).toBe('1');
  }
  expect(await stored(nodes[0])).toEqual({ live: 100, later: 0 });
});

it('bulks are taken whole or not at all, and one beyond the quota itself is not to be tried again', async () => {
  const [first, second] = await twoNodes();
  await limited(first, { liveJobs: 100 });
  const tooMany = await bulk(second, 101);
  refused(tooMany, 'liveJobs', 100);
  expect(tooMany.headers.get('retry-after')).toBeNull();
  expect((await bulk(first, 60)).status).toBe(201);
  refused(await bulk(second, 41), 'liveJobs', 100);
  expect((await bulk(second, 40)).status).toBe(201);
  refused(await submit(first), 'liveJobs', 100);
  expect(await stored(first)).toEqual({ live: 100, later: 0 });
});

it('jobs that end make room', async () => {
  const [first, second] = await twoNodes();
  await limited(first, { liveJobs: 5 });
  expect((await bulk(first, 5)).status).toBe(201);
  refused(await submit(second), 'liveJobs', 5);
  const worker = await ProtocolWorker.register(first, { slots: 10 }, 'acme');
  await worker.succeed(await worker.claimOne());
  await vi.waitFor(async () => expect((await submit(second)).status).toBe(201));
  refused(await submit(second), 'liveJobs', 5);
});

it('jobs that are due later or on hold have a quota of their own', async () => {
  const [first, second] = await twoNodes();
  await limited(first, { laterJobs: 2, liveJobs: 1 });
  expect((await submit(first, { delay: '1h' })).status).toBe(201);
  expect((await submit(second, { hold: true })).status).toBe(201);
  refused(await submit(first, { delay: '1h' }), 'laterJobs', 2);
  refused(await submit(second, { hold: true }), 'laterJobs', 2);
  expect((await submit(second)).status).toBe(201);
  refused(await submit(first), 'liveJobs', 1);
  const mixed = [{ task: 'work' }, { task: 'work', delay: '1h' }];
  refused(await first.ask('POST', '/v1/jobs/bulk', { body: { jobs: mixed }, tenant: 'acme' }), 'liveJobs', 1);
  expect(await stored(first)).toEqual({ live: 1, later: 2 });
});

it('the same key again needs no room', async () => {
  const [first, second] = await twoNodes();
  await limited(first, { liveJobs: 1 });
  const { body } = await submit(first, { key: 'one' });
  expect(await submit(second, { key: 'one' })).toMatchObject({ status: 200, body: { id: body.id } });
  refused(await submit(second, { key: 'two' }), 'liveJobs', 1);
  expect(await submit(second, { key: 'one', keyMode: 'replace' })).toMatchObject({ status: 200 });
  refused(await submit(second, { key: 'two', keyMode: 'replace' }), 'liveJobs', 1);
});

it("one tenant's quota neither refuses nor delays what others submit in the same moment", async () => {
  const node = await nodeForTest();
  await limited(node, { liveJobs: 3 });
  await submit(node);
  // Whoever holds the row of the tenant makes its submissions wait, but nobody else's.
  const { pool } = node.node.context.shards[0];
  const holder = await pool.connect();
  await holder.query('BEGIN');
  await holder.query(`SELECT 1 FROM punctual.tenant_usage WHERE tenant = 'acme' FOR UPDATE`);
  const waiting = Array.from({ length: 10 }, () => submit(node));
  const others = await Promise.all(Array.from({ length: 50 }, () => submit(node, {}, 'other')));
  expect(others.every(({ status }) => status === 201)).toBe(true);
  await holder.query('ROLLBACK');
  holder.release();
  const answers = await Promise.all(waiting);
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(2);
  expect(await stored(node, 'other')).toEqual({ live: 50, later: 0 });
});

it('at the limit, a change of leaders lets nothing beyond it, and room is found at once', async () => {
  const [first, second] = await twoNodes();
  await limited(first, { liveJobs: 10 });
  expect((await bulk(second, 10)).status).toBe(201);
  await first.node.stop();
  refused(await submit(second), 'liveJobs', 10);
  await vi.waitFor(() => expect(second.node.leads()).toBe(true), 15_000);
  refused(await submit(second), 'liveJobs', 10);
  const worker = await ProtocolWorker.register(second, { slots: 10 }, 'acme');
  await worker.succeed(await worker.claimOne());
  await vi.waitFor(async () => expect((await submit(second)).status).toBe(201));
  expect(await stored(second)).toEqual({ live: 10, later: 0 });
});

it('what the leader adds by itself is never refused, and counts', async () => {
  const node = await nodeForTest({ settings: { laterThreshold: '1s' } });
  await limited(node, { liveJobs: 3 });
  const { body } = await submit(node, { hold: true });
  expect((await bulk(node, 2)).status).toBe(201);
  await node.get('POST', `/v1/jobs/${body.id as string}/release`, { tenant: 'acme' });
  await node.get('POST', '/v1/schedules', {
    body: { name: 'often', task: 'work', every: '1h' },
    tenant: 'acme',
  });
  await node.get('POST', '/v1/schedules/often/run', { tenant: 'acme' });
  expect((await stored(node)).live).toBe(4);
  refused(await submit(node), 'liveJobs', 3);
  const usage = await node.node.context.shards[0].pool.query('SELECT live::int FROM punctual.tenant_usage');
  expect(usage.rows[0]).toMatchObject({ live: expect.any(Number) });
});

it('a quota that is set, raised or taken away is seen by the other node within about a second', async () => {
  const [first, second] = await twoNodes();
  await limited(first, {});
  const change = (quotas: Record<string, number | null>) =>
    first.get('PATCH', '/v1/tenants/acme', { body: { quotas } });
  expect((await bulk(second, 5)).status).toBe(201);
  await change({ liveJobs: 5 });
  await vi.waitFor(async () => refused(await submit(second), 'liveJobs', 5), 5_000);
  await change({ liveJobs: 100 });
  await vi.waitFor(async () => expect((await submit(second)).status).toBe(201), 5_000);
  await change({ liveJobs: 1 });
  await vi.waitFor(async () => refused(await submit(second), 'liveJobs', 1), 5_000);
  await change({ liveJobs: null });
  await vi.waitFor(async () => expect((await submit(second)).status).toBe(201), 5_000);
});

it('the row of a tenant never says fewer jobs than there are, whatever happens to them', async () => {
  const node = await nodeForTest({ settings: { laterThreshold: '1s' } });
  await limited(node, { liveJobs: 1_000, laterJobs: 1_000 });
  const worker = await ProtocolWorker.register(node, { slots: 50 }, 'acme');
  for (let round = 0; round < 10; round++) {
    await bulk(node, 5);
    await bulk(node, 3, { delay: '1h' });
    const { body } = await submit(node, { hold: true });
    await node.get('POST', `/v1/jobs/${body.id as string}/release`, { tenant: 'acme' });
    await worker.succeed(await worker.claimOne());
  }
  await vi.waitFor(async () => {
    const { rows } = await node.node.context.shards[0].pool.query(
      'SELECT live::int, later::int FROM punctual.tenant_usage',
    );
    const usage = rows[0] as { live: number; later: number };
    const { live, later } = await stored(node);
    expect(usage.live).toBeGreaterThanOrEqual(live);
    expect(usage.later).toBeGreaterThanOrEqual(later);
  });
});

/** Locks the row of a tenant as a count or a large bulk does; answers with a way to let go of it. */
async function holdUsage(database: TestDatabase, tenant: string): Promise<() => Promise<void>> {
  const holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM punctual.tenant_usage WHERE tenant = $1 FOR UPDATE', [tenant]);
  return () => holder.end();
}

it('a job whose tenant is being counted keeps no worker from jobs of others', async () => {
  const node = await nodeForTest();
  await vi.waitFor(() => expect(node.node.leads()).toBe(true));
  await limited(node, { liveJobs: 100 });
  const worker = await ProtocolWorker.register(node, { slots: 10, shared: true });
  // From now on all names are known, and jobs are stored and started at once.
  for (const tenant of ['acme', 'other']) {
    const claimed = worker.claim();
    await submit(node, {}, tenant);
    await claimed;
  }
  const letGo = await holdUsage(node.database, 'acme');
  const claimed = worker.claimSilently();
  await vi.waitFor(() => expect(waitingPolls(node)).toBe(1));
  const held = submit(node);
  const other = await submit(node, {}, 'other');
  expect((await claimed).map(({ jobId }) => jobId)).toEqual([other.body.id]);
  await letGo();
  expect((await held).status).toBe(201);
});

function waitingPolls(node: TestNode): number {
  const { sessions } = (node.node.context.shards[0].currentLeader() as unknown as { state: LeaderState })
    .state;
  return [...sessions.values()].reduce((count, { polls }) => count + polls.size, 0);
}

it('whoever counts for several tenants waits for none of them', async () => {
  const node = await nodeForTest();
  for (const id of ['acme', 'other']) {
    await limited(node, { liveJobs: 100 }, id);
    expect((await submit(node, {}, id)).status).toBe(201);
  }
  const { hot } = node.node.context.shards[0];
  const letGo = await holdUsage(node.database, 'acme');
  const one = { live: 1, later: 0 };
  const added = await addUsage(hot, [
    { tenant: 'other', ...one },
    { tenant: 'acme', ...one },
  ]);
  expect(added).toEqual(['acme']);
  expect(await forgetUsage(hot, ['other', 'acme', 'without quotas'])).toEqual(['acme']);
  const usage = 'SELECT tenant, live::int FROM punctual.tenant_usage ORDER BY 1';
  expect((await hot.query(usage)).rows).toEqual([
    { tenant: 'acme', live: 1 },
    { tenant: 'other', live: null },
  ]);
  await letGo();
  await addUsageOfOne(hot, { tenant: 'acme', ...one });
  expect((await hot.query(usage)).rows[0]).toEqual({ tenant: 'acme', live: 2 });
});

it('a job that is replaced by one that is due now counts as a live one', async () => {
  const node = await nodeForTest();
  await limited(node, { liveJobs: 3 });
  for (let i = 0; i < 5; i++) expect((await submit(node, { key: `k${i}`, delay: '1h' })).status).toBe(201);
  expect((await submit(node)).status).toBe(201);
  for (let i = 0; i < 5; i++)
    expect((await submit(node, { key: `k${i}`, keyMode: 'replace' })).status).toBe(200);
  await vi.waitFor(async () => {
    const { rows } = await node.node.context.shards[0].pool.query(
      'SELECT live::int FROM punctual.tenant_usage',
    );
    expect(rows).toEqual([{ live: 6 }]);
  });
  refused(await submit(node), 'liveJobs', 3);
  // Where it stays where it was, it is no other job.
  expect((await submit(node, { key: 'k0', keyMode: 'replace' })).status).toBe(200);
  expect(await stored(node)).toEqual({ live: 6, later: 0 });
});

it('tenants whose rows are locked keep no connection of the leader, however many of their jobs may replace others', async () => {
  const node = await nodeForTest();
  await vi.waitFor(() => expect(node.node.leads()).toBe(true));
  const tenants = ['a', 'b', 'c', 'd', 'e'];
  for (const tenant of tenants) {
    await limited(node, { liveJobs: 100 }, tenant);
    expect((await submit(node, { key: 'first', keyMode: 'replace' }, tenant)).status).toBe(201);
  }
  const worker = await ProtocolWorker.register(node, {}, 'other');
  await submit(node, {}, 'other');
  await worker.succeed(await worker.claimOne());
  await withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM punctual.tenant_usage FOR UPDATE');
    const held = tenants.map((tenant) => submit(node, { key: 'next', keyMode: 'replace' }, tenant));
    let answered = 0;
    for (const each of held) void each.then(() => (answered += 1));
    await until(async () => (await lockWaits(client)) >= 4);
    const claimed = worker.claimSilently();
    const { body } = await submit(node, {}, 'other');
    expect(await claimed).toMatchObject([{ jobId: body.id }]);
    // Locks are waited for during two seconds; so long, this one would have waited as well.
    expect(answered).toBe(0);
    await client.query('ROLLBACK');
    for (const { status, body } of await Promise.all(held))
      if (status !== 201) expect([status, body.code]).toEqual([503, 'TOO_BUSY']);
  });
}, 30_000);

it('a submission that finds the row of its tenant locked for too long is told to try again, not that a quota is used up', async () => {
  const node = await nodeForTest();
  await limited(node, { liveJobs: 100 });
  expect((await submit(node, { key: 'a', keyMode: 'replace' })).status).toBe(201);
  const letGo = await holdUsage(node.database, 'acme');
  const answer = await submit(node, { key: 'b', keyMode: 'replace' });
  expect(answer).toMatchObject({ status: 503, body: { code: 'TOO_BUSY' } });
  expect(answer.headers.get('retry-after')).toBe('1');
  await letGo();
  expect((await submit(node, { key: 'b', keyMode: 'replace' })).status).toBe(201);
});

it('of many submissions with keys the first that fit are taken, and the others are refused without trying each', async () => {
  const node = await nodeForTest();
  const shard = node.node.context.shards[0];
  await limited(node, { liveJobs: 10 });
  expect((await submit(node, { key: 'there' })).status).toBe(201);
  const { config } = node.node.context;
  const send = (key: string) =>
    shard.submitter.submit({
      owner: { tenant: 'acme', createdBy: 'tester', isCounted: true },
      submission: parseSubmission({ task: 'work', key }, { ...config, now: shard.clock.now() }),
    });
  const used = [vi.spyOn(shard.hot, 'connect'), vi.spyOn(shard.pool, 'connect')];
  const keys = Array.from({ length: 300 }, (_, i) => (i % 100 === 50 ? 'there' : `k${i}`));
  const outcomes = await Promise.allSettled([...keys, 'k0', 'k299'].map(send));
  const taken = outcomes.flatMap(({ status }, i) => (status === 'fulfilled' ? [i] : []));
  expect(taken).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 50, 150, 250, 300]);
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'QUOTA_EXCEEDED' });
  expect(used.reduce((sum, { mock }) => sum + mock.calls.length, 0)).toBeLessThan(30);
  expect(await stored(node)).toEqual({ live: 10, later: 0 });
});

it('a job that people move is counted after the commit, and not at all if that does not come', async () => {
  const node = await nodeForTest();
  await limited(node, { liveJobs: 10, laterJobs: 10 });
  const { body } = await submit(node, { hold: true });
  const { addedJobs } = (node.node.context.shards[0].currentLeader() as unknown as { state: LeaderState })
    .state;
  const note = vi.spyOn(addedJobs, 'note');
  const release = () =>
    node.ask('POST', `/v1/jobs/${body.id as string}/release`, {
      ...{ tenant: 'acme', headers: { 'idempotency-key': 'once' } },
    });
  await withClient(node.database.url, async (client) => {
    // Another request with the same key is about to be answered: this one is rolled back after its effect.
    await client.query('BEGIN');
    await client.query(
      `INSERT INTO punctual.idempotency (tenant, key, request, status, created_at)
       VALUES ('acme', 'once', '\\x00', 200, (extract(epoch FROM now()) * 1000)::bigint)`,
    );
    expect(await release()).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_IN_FLIGHT' } });
    await client.query('ROLLBACK');
  });
  expect(note).not.toHaveBeenCalled();
  expect((await release()).status).toBe(200);
  expect(note.mock.calls).toEqual([['acme', 1, 0]]);
});

import { expect, it, onTestFinished, vi } from 'vitest';
import type { TenantView } from '../../../src/core/wire.js';
import { createTestDatabase } from '../../database.js';
import { type Answer, nodeForTest, type TestNode } from '../../node-for-tests.js';
import { lockWaits, withClient } from '../../postgres-client.js';
import { until } from '../store/test-shard.js';

/** Two nodes of one cluster; the first leads. */
async function twoNodes(settings = {}): Promise<[TestNode, TestNode]> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const first = await nodeForTest({ database, settings });
  await vi.waitFor(() => expect(first.node.leads()).toBe(true));
  return [first, await nodeForTest({ database, settings })];
}

async function limited(node: TestNode, quotas: Record<string, number>, id = 'acme'): Promise<void> {
  await node.get('POST', '/v1/tenants', { body: { id, quotas } });
}

const submit = (node: TestNode, body: Record<string, unknown> = {}, tenant = 'acme') =>
  node.ask('POST', '/v1/jobs', { body: { task: 'work', ...body }, tenant });

const bulk = (node: TestNode, jobs: Record<string, unknown>[], tenant = 'acme') =>
  node.ask('POST', '/v1/jobs/bulk', {
    body: { jobs: jobs.map((job) => ({ task: 'work', ...job })) },
    tenant,
  });

const schedule = (node: TestNode, name: string, more: Record<string, unknown> = {}) =>
  node.ask('POST', '/v1/schedules', {
    body: { name, task: 'work', every: '1h', ...more },
    tenant: 'acme',
  });

async function rows(node: TestNode, table: string): Promise<number> {
  const { rows } = await node.node.context.shards[0].pool.query(
    `SELECT count(*)::int AS rows FROM punctual.${table} WHERE tenant = 'acme'`,
  );
  return (rows[0] as { rows: number }).rows;
}

function refused(answer: Answer, quota: string, limit: number): void {
  expect(answer).toMatchObject({ status: 429, body: { code: 'QUOTA_EXCEEDED', quota, limit } });
}

it('a tenant shows its quotas, null where it has none, and takes no quota that there is not', async () => {
  const node = await nodeForTest();
  const none = {
    liveJobs: null,
    laterJobs: null,
    schedules: null,
    queues: null,
    submissionsPerSecond: null,
    payloadBytes: null,
    artifactBytes: null,
  };
  const made = await node.get<TenantView>('POST', '/v1/tenants', {
    body: { id: 'acme', quotas: { queues: 3, liveJobs: 0 } },
  });
  expect(made.quotas).toEqual({ ...none, queues: 3, liveJobs: 0 });
  const changed = await node.get<TenantView>('PATCH', '/v1/tenants/acme', {
    body: { quotas: { queues: null, payloadBytes: 7 } },
  });
  expect(changed.quotas).toEqual({ ...none, liveJobs: 0, payloadBytes: 7 });
  await node.get('PATCH', '/v1/tenants/acme', { body: { weight: 2 } });
  expect((await node.get<TenantView>('GET', '/v1/tenants/acme')).quotas).toEqual(changed.quotas);
  for (const quotas of [
    { artifactBytes: -1 },
    { somethingElse: 1 },
    { liveJobs: -1 },
    { submissionsPerSecond: 0 },
    { queues: 1.5 },
  ]) {
    const answer = await node.ask('PATCH', '/v1/tenants/acme', { body: { quotas } });
    expect(answer, JSON.stringify(quotas)).toMatchObject({ status: 422, body: { code: 'INVALID_REQUEST' } });
  }
});

it('queues beyond the quota do not come into being, however many nodes make them at once', async () => {
  const nodes = await twoNodes();
  await limited(nodes[0], { queues: 5 });
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, i) => submit(nodes[i % 2]!, { queue: `q${i}` })),
  );
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
  for (const answer of answers.filter(({ status }) => status !== 201)) refused(answer, 'queues', 5);
  expect([await rows(nodes[0], 'queues'), await rows(nodes[0], 'jobs')]).toEqual([5, 5]);
  const [known] = answers.filter(({ status }) => status === 201);
  expect((await submit(nodes[1], { queue: known!.body.queue })).status).toBe(201);
  refused(await bulk(nodes[1], [{ queue: known!.body.queue }, { queue: 'new' }]), 'queues', 5);
  refused(
    await nodes[0].ask('PATCH', '/v1/queues/new', { body: { concurrency: 1 }, tenant: 'acme' }),
    'queues',
    5,
  );
  refused(await schedule(nodes[1], 's', { queue: 'new' }), 'queues', 5);
  expect([await rows(nodes[0], 'queues'), await rows(nodes[0], 'jobs')]).toEqual([5, 6]);
});

it('tenants without a quota of queues have that of the nodes, and others are not refused with them', async () => {
  const node = await nodeForTest({ settings: { maxQueues: 2 } });
  await limited(node, { queues: 4 }, 'more');
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, i) => [
      submit(node, { queue: `q${i}` }, 'acme'),
      submit(node, { queue: `q${i}` }, 'more'),
    ]).flat(),
  );
  const statuses = (odd: number) =>
    answers.filter((_, i) => i % 2 === odd && answers[i]!.status === 201).length;
  expect([statuses(0), statuses(1)]).toEqual([2, 4]);
});

it("a submission by SQL beyond the quota of queues fails when it is admitted, and holds up nobody's", async () => {
  const node = await nodeForTest({ settings: { maxQueues: 0 } });
  const { pool } = node.node.context.shards[0];
  const { rows: made } = await pool.query(
    `SELECT punctual.submit_job('acme', '{"task": "work", "queue": "new"}'::json) AS id`,
  );
  await limited(node, { queues: 1 }, 'more');
  await pool.query(`SELECT punctual.submit_job('more', '{"task": "work", "queue": "mine"}'::json) AS id`);
  const failed = await node.ended((made[0] as { id: string }).id, 'acme');
  expect(failed).toMatchObject({ state: 'failed', error: { code: 'QUOTA_EXCEEDED' } });
  await vi.waitFor(async () => {
    const { rows: live } = await pool.query(`SELECT 1 FROM punctual.jobs WHERE tenant = 'more'`);
    expect(live).toHaveLength(1);
  }, 10_000);
});

it('schedules beyond the quota are refused, and a deleted one makes room', async () => {
  const nodes = await twoNodes();
  await limited(nodes[0], { schedules: 3 });
  const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => schedule(nodes[i % 2]!, `s${i}`)));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
  for (const answer of answers.filter(({ status }) => status !== 201)) refused(answer, 'schedules', 3);
  const [made] = answers.filter(({ status }) => status === 201);
  const name = made!.body.name as string;
  expect((await schedule(nodes[1], name)).body).toMatchObject({ code: 'SCHEDULE_EXISTS' });
  await nodes[1].get('DELETE', `/v1/schedules/${name}`, { tenant: 'acme' });
  expect((await schedule(nodes[1], 'another')).status).toBe(201);
});

it('payloads beyond the quota are too large, wherever they are given', async () => {
  const [first, second] = await twoNodes();
  await limited(first, { payloadBytes: 10 });
  const large = (answer: Answer, pointer: string) =>
    expect(answer).toMatchObject({
      status: 413,
      body: { code: 'PAYLOAD_TOO_LARGE', quota: 'payloadBytes', limit: 10, errors: [{ pointer }] },
    });
  const fits = await submit(second, { payload: '12345678' });
  expect(fits.status).toBe(201);
  large(await submit(second, { payload: '123456789' }), '/payload');
  large(await submit(second, { payload: 'ääää€' }), '/payload');
  large(await bulk(second, [{}, { payload: '123456789' }]), '/jobs/1/payload');
  const path = `/v1/jobs/${fits.body.id as string}`;
  large(await second.ask('PATCH', path, { body: { payload: '123456789' }, tenant: 'acme' }), '/payload');
  large(await schedule(second, 's', { payload: '123456789' }), '/payload');
  expect((await submit(second, { payload: '123456789' }, 'other')).status).toBe(201);
  expect(await rows(first, 'jobs')).toBe(1);
});

it('submissions beyond the rate are refused for a while, one by one and in bulk', async () => {
  const [first, second] = await twoNodes();
  await limited(first, { submissionsPerSecond: 20 });
  const answers = await Promise.all(Array.from({ length: 60 }, () => submit(second)));
  const taken = answers.filter(({ status }) => status === 201).length;
  expect(taken).toBeGreaterThanOrEqual(20);
  const others = answers.filter(({ status }) => status !== 201);
  for (const answer of others) {
    refused(answer, 'submissionsPerSecond', 20);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  }
  expect(await rows(first, 'jobs')).toBe(taken);
  const hopeless = await bulk(
    second,
    Array.from({ length: 21 }, () => ({})),
  );
  refused(hopeless, 'submissionsPerSecond', 20);
  expect(hopeless.headers.get('retry-after')).toBeNull();
  await vi.waitFor(
    async () =>
      expect(
        await bulk(
          second,
          Array.from({ length: 20 }, () => ({})),
        ),
      ).toMatchObject({ status: 201 }),
    { timeout: 10_000, interval: 300 },
  );
  expect((await submit(second, {}, 'other')).status).toBe(201);
});

it('the nodes agree on how much of the rate each of them takes', async () => {
  const nodes = await twoNodes();
  await limited(nodes[0], { submissionsPerSecond: 50 });
  const until = performance.now() + 5_000;
  let taken = 0;
  const flood = async (node: TestNode) => {
    while (performance.now() < until) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => submit(node)));
      taken += answers.filter(({ status }) => status === 201).length;
    }
  };
  const since = performance.now();
  await Promise.all(nodes.map(flood));
  const seconds = (performance.now() - since) / 1_000;
  // A bucket of a second's worth at each node, a second until they agree, and then the quota for both together.
  expect(taken).toBeLessThanOrEqual(50 * (2 + 2 + seconds) * 1.1);
  expect(taken).toBeGreaterThanOrEqual(50 * seconds * 0.5);
});

it('metrics count what was refused, by quota', async () => {
  const node = await nodeForTest();
  await limited(node, { liveJobs: 0, queues: 1 });
  refused(await submit(node), 'liveJobs', 0);
  refused(await bulk(node, [{ queue: 'a' }, { queue: 'b' }]), 'queues', 1);
  const { body } = await node.ask<string>('GET', '/metrics');
  expect(body).toContain('punctual_quota_refusals_total{quota="liveJobs"} 1');
  expect(body).toContain('punctual_quota_refusals_total{quota="queues"} 1');
});

it('a schedule that takes long to store delays no schedules of other tenants', async () => {
  const node = await nodeForTest();
  await vi.waitFor(() => expect(node.node.leads()).toBe(true));
  const make = (tenant: string) =>
    node.ask('POST', '/v1/schedules', { body: { name: 'daily', task: 'work', every: '1d' }, tenant });
  await withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    // One of the same name that is not committed: the request waits for what becomes of it.
    await client.query(
      `INSERT INTO punctual.schedules
         (id, tenant, name, definition, paused, watermark, created_at, created_by, changed_at, changed_by)
       VALUES (gen_random_uuid(), 'acme', 'daily', '{}', true, 0, 0, 'x', 0, 'x')`,
    );
    const slow = make('acme');
    await until(async () => (await lockWaits(client)) > 0);
    const other = make('other');
    expect(await Promise.race([slow.then(() => 'acme'), other.then(() => 'other')])).toBe('other');
    expect((await other).status).toBe(201);
    await client.query('ROLLBACK');
    expect((await slow).status).toBe(201);
  });
});

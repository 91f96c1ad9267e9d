import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { KeyInput, KeyView, NewKeyView } from '../../src/core/access.js';
import type { Job } from '../../src/core/job.js';
import type { Assignment } from '../../src/core/wire.js';
import type { LeaderState } from '../../src/dispatch/leader-state.js';
import { createTestDatabase } from '../database.js';
import { type Ask, nodeForTest, TestNode } from '../node-for-tests.js';
import { TestClock } from '../test-clock.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const make = (input: Partial<KeyInput>, ask: Ask = {}, at = node) =>
  at.ask<NewKeyView>('POST', '/v1/keys', { body: { name: 'made', ...input }, ...ask });

const keyOf = async (input: Partial<KeyInput>, ask: Ask = {}, at = node) => {
  const { status, body } = await make(input, ask, at);
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
};

let tenants = 0;
const newTenant = () => {
  tenants += 1;
  return `team-${tenants}`;
};

describe('a key of a tenant', () => {
  it('submits and reads the jobs of its tenant, whatever tenant others have', async () => {
    const [acme, globex] = [newTenant(), newTenant()];
    const { key, ...view } = await keyOf({ name: 'shop', tenant: acme, scopes: ['submit', 'read'] });
    expect(key).toMatch(/^pk_tn_[\w-]{51}$/);
    expect(view).toMatchObject({
      ...{
        name: 'shop',
        tenant: acme,
        operator: false,
        scopes: ['submit', 'read'],
        queues: null,
        tasks: null,
      },
      ...{ expiresAt: null, createdBy: 'tester', lastUsedAt: null },
    });
    const job = await node.get<Job>('POST', '/v1/jobs', { key, body: { task: 'greet' } });
    expect(job).toMatchObject({ tenant: acme, createdBy: 'shop' });
    expect((await node.ask('GET', `/v1/jobs/${job.id}`, { key })).status).toBe(200);
    const other = await keyOf({ tenant: globex, scopes: ['submit', 'read'] });
    expect(await node.ask('GET', `/v1/jobs/${job.id}`, { key: other.key })).toMatchObject({
      status: 404,
      body: { code: 'JOB_NOT_FOUND' },
    });
    expect(await node.ask('GET', '/v1/jobs', { key, tenant: globex })).toMatchObject({
      status: 403,
      body: { code: 'FORBIDDEN' },
    });
  });

  it('is never shown again', async () => {
    const { id, key } = await keyOf({ tenant: newTenant(), scopes: ['read'] });
    const answers = [await node.ask('GET', `/v1/keys/${id}`), await node.ask('GET', '/v1/keys')];
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(JSON.stringify(body)).not.toContain(key);
    }
    const client = new pg.Client({ connectionString: node.database.url });
    await client.connect();
    onTestFinished(() => client.end());
    const { rows } = await client.query('SELECT k::text AS text FROM punctual.api_keys k WHERE id = $1', [
      id,
    ]);
    expect(rows[0].text).not.toContain(key.slice(6, 20));
  });

  it('reads its own tenant, and no other', async () => {
    const [acme, globex] = [newTenant(), newTenant()];
    const quotas = { liveJobs: 7 };
    for (const id of [acme, globex])
      await node.get('POST', '/v1/tenants', { body: { id, weight: 3, quotas } });
    const { key } = await keyOf({ tenant: acme, scopes: ['read'] });
    const own = await node.get('GET', `/v1/tenants/${acme}`, { key });
    expect(own).toMatchObject({ id: acme, name: acme, weight: 3, rate: null, quotas });
    expect(await node.get('GET', '/v1/tenants', { key })).toEqual({ data: [own], next: null });
    expect(await node.ask('GET', `/v1/tenants/${globex}`, { key })).toMatchObject({
      status: 404,
      body: { code: 'TENANT_NOT_FOUND' },
    });
    const unnamed = await keyOf({ tenant: newTenant(), scopes: ['read'] });
    expect(await node.get('GET', '/v1/tenants', { key: unnamed.key })).toEqual({ data: [], next: null });
  });

  it('that expires is refused from then on', async () => {
    const clock = new TestClock();
    const own = await nodeForTest({ clock });
    const expiresAt = new Date(clock.now() + 3_600_000).toISOString();
    const { key } = await keyOf({ tenant: 'acme', scopes: ['read'], expiresAt }, {}, own);
    expect((await own.ask('GET', '/v1/jobs', { key })).status).toBe(200);
    const waits = own.ask('GET', `/v1/jobs/${(await own.submit({ task: 't' }, 'acme')).id}?wait=60s`, {
      key,
    });
    clock.advance(3_599_000);
    expect((await own.ask('GET', '/v1/jobs', { key })).status).toBe(200);
    clock.advance(1_000);
    expect((await own.ask('GET', '/v1/jobs', { key })).status).toBe(401);
    expect((await waits).status).toBe(401);
    const past = { tenant: 'acme', scopes: ['read' as const], expiresAt };
    expect(await make(past, {}, own)).toMatchObject({ status: 422, body: { code: 'INVALID_REQUEST' } });
  }, 30_000);

  it('has the hour of its last use on record', async () => {
    const { id, key } = await keyOf({ tenant: newTenant(), scopes: ['read'] });
    await node.ask('GET', '/v1/jobs', { key });
    await vi.waitFor(
      async () => {
        const { lastUsedAt } = await node.get<KeyView>('GET', `/v1/keys/${id}`);
        expect(lastUsedAt).toMatch(/T\d\d:00:00\.000Z$/);
      },
      { timeout: 20_000, interval: 250 },
    );
  }, 30_000);
});

describe('a key with the scope admin', () => {
  it('manages the keys of its tenant, and sees no others', async () => {
    const tenant = newTenant();
    const admin = await keyOf({ tenant, scopes: ['admin', 'submit'] });
    const other = await keyOf({ tenant: newTenant(), scopes: ['read'] });
    const made = await keyOf({ scopes: ['submit'] }, { key: admin.key });
    expect(made).toMatchObject({ tenant, createdBy: 'made' });
    const list = await node.get<{ data: KeyView[] }>('GET', '/v1/keys', { key: admin.key });
    expect(list.data.map(({ id }) => id)).toEqual([made.id, admin.id]);
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/rotate'],
    ] as const) {
      const answer = await node.ask(method, `/v1/keys/${other.id}${path}`, { key: admin.key });
      expect(answer).toMatchObject({ status: 404, body: { code: 'KEY_NOT_FOUND' } });
    }
    expect((await node.ask('DELETE', `/v1/keys/${made.id}`, { key: admin.key })).status).toBe(204);
    expect((await node.ask('GET', `/v1/keys/${made.id}`, { key: admin.key })).status).toBe(404);
  });

  it('grants no more than it has', async () => {
    const tenant = newTenant();
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const admin = await keyOf({ tenant, scopes: ['admin'], queues: ['a', 'b'], expiresAt });
    const ask = { key: admin.key };
    const refused: Partial<KeyInput>[] = [
      { scopes: ['submit'] },
      { scopes: ['read', 'work'] },
      { scopes: ['read'], queues: ['c'] },
      { scopes: ['read'], tenant: 'another' },
      { operator: true },
      { scopes: ['read'], expiresAt: new Date(Date.now() + 7_200_000).toISOString() },
    ];
    for (const input of refused) {
      expect([input, (await make(input, ask)).body]).toMatchObject([input, { code: 'FORBIDDEN' }]);
    }
    // What it says nothing about is as limited as it is itself.
    expect(await keyOf({ scopes: ['read'] }, ask)).toMatchObject({
      queues: ['a', 'b'],
      tasks: null,
      expiresAt,
    });
    expect(await keyOf({ scopes: ['read'], queues: ['b'], tasks: ['t'] }, ask)).toMatchObject({
      queues: ['b'],
      tasks: ['t'],
    });
    const stronger = await keyOf({ tenant, scopes: ['submit'] });
    const rotated = await node.ask('POST', `/v1/keys/${stronger.id}/rotate`, ask);
    expect(rotated).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
    const revoked = await node.ask('DELETE', `/v1/keys/${stronger.id}`, ask);
    expect(revoked).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
    expect((await node.ask('POST', '/v1/jobs', { key: stronger.key, body: { task: 't' } })).status).toBe(201);
    const wider = await keyOf({ tenant, scopes: ['read'], queues: ['a', 'c'] });
    expect((await node.ask('DELETE', `/v1/keys/${wider.id}`, ask)).status).toBe(403);
    // Whatever it may do, a key that has leaked must be ended at once.
    const within = await keyOf({ tenant, scopes: ['submit'], queues: ['a'] });
    expect((await node.ask('DELETE', `/v1/keys/${within.id}`, ask)).status).toBe(204);
    expect((await node.ask('DELETE', `/v1/keys/${admin.id}`, ask)).status).toBe(204);
  });
});

describe('a key of an operator', () => {
  it('is made by operators, and may do everything', async () => {
    const { key, ...view } = await keyOf({ operator: true });
    expect(view).toMatchObject({ operator: true, tenant: null, scopes: [] });
    expect(key).toMatch(/^pk_op_/);
    expect((await node.ask('GET', '/v1/tenants', { key })).status).toBe(200);
    expect((await make({})).status).toBe(422);
  });

  it('with the scope read sees what an operator sees, and changes nothing', async () => {
    const tenant = newTenant();
    await node.get('POST', '/v1/tenants', { body: { id: tenant } });
    const job = await node.get<Job>('POST', '/v1/jobs', { tenant, body: { task: 't' } });
    const { key, id, ...view } = await keyOf({ operator: true, scopes: ['read'] });
    expect(view).toMatchObject({ operator: true, tenant: null, scopes: ['read'] });
    const seen = <T>(path: string, named?: string) =>
      node.get<T>('GET', path, { key, ...(named && { tenant: named }) });
    expect(await seen('/v1/cluster')).toMatchObject({ nodes: [{}], shards: [{}] });
    expect(await seen('/metrics')).toContain('punctual_workers');
    expect(await seen(`/v1/tenants/${tenant}`)).toMatchObject({ id: tenant });
    expect(await seen(`/v1/jobs/${job.id}`, tenant)).toMatchObject({ id: job.id });
    for (const [method, path] of [
      ['POST', `/v1/jobs/${job.id}/cancel`],
      ['PATCH', `/v1/tenants/${tenant}`],
      ['POST', '/v1/keys'],
      ['POST', '/v1/cluster/pause'],
    ] as const) {
      const answer = await node.ask(method, path, { key, tenant, body: {} });
      expect([path, answer]).toMatchObject([
        path,
        { status: 403, body: { detail: expect.stringContaining('may only read') } },
      ]);
    }
    const rotated = await node.get<NewKeyView>('POST', `/v1/keys/${id}/rotate`);
    expect(rotated).toMatchObject({ operator: true, scopes: ['read'] });
  });

  it.each<Partial<KeyInput>>([
    { scopes: ['admin'] },
    { scopes: ['read', 'submit'] },
    { queues: ['mail'] },
    { tenant: 'acme' },
  ])('has no other limits: %j', async (input) => {
    const pointer = `/${Object.keys(input)[0]}`;
    expect(await make({ operator: true, ...input })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer }] },
    });
  });

  it('lists all keys page by page, or those of the tenant it names', async () => {
    const tenant = newTenant();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await keyOf({ tenant, scopes: ['read'] })).id);
    type Keys = { data: KeyView[]; next: string | null };
    const first = await node.get<Keys>('GET', '/v1/keys?limit=2', { tenant });
    const second = await node.get<Keys>('GET', `/v1/keys?limit=2&after=${first.next}`, { tenant });
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids);
    expect(second.next).toBeNull();
    const all = await node.get<Keys>('GET', '/v1/keys?limit=1000');
    expect(all.data.some(({ operator }) => operator)).toBe(true);
    expect((await node.ask('GET', '/v1/keys?after=x')).status).toBe(422);
  });
});

describe('rotation', () => {
  it('makes the next key with the same rights, and both are valid until the old one ends', async () => {
    const old = await keyOf({ tenant: newTenant(), scopes: ['submit'], queues: ['a'] });
    const { status, body: next } = await node.ask<NewKeyView>('POST', `/v1/keys/${old.id}/rotate`);
    expect(status).toBe(201);
    const { tenant, name, scopes, queues, tasks } = old;
    expect(next).toMatchObject({ tenant, name, scopes, queues, tasks, expiresAt: null });
    const ends = (await node.get<KeyView>('GET', `/v1/keys/${old.id}`)).expiresAt!;
    expect(Date.parse(ends) - Date.now()).toBeGreaterThan(23 * 3_600_000);
    for (const { key } of [old, next]) {
      const answer = await node.ask('POST', '/v1/jobs', { key, body: { task: 't', queue: 'a' } });
      expect(answer.status).toBe(201);
    }
  });

  it('ends the old key when it is told to', async () => {
    const old = await keyOf({ tenant: newTenant(), scopes: ['read'] });
    expect((await node.ask('GET', '/v1/jobs', { key: old.key })).status).toBe(200);
    await node.get('POST', `/v1/keys/${old.id}/rotate`, { body: { oldExpiresIn: '1ms' } });
    await vi.waitFor(
      async () => expect((await node.ask('GET', '/v1/jobs', { key: old.key })).status).toBe(401),
      { timeout: 5_000 },
    );
    const again = await node.ask('POST', `/v1/keys/${old.id}/rotate`);
    expect(again).toMatchObject({ status: 409, body: { code: 'KEY_EXPIRED' } });
  });
});

describe('a revoked key', () => {
  it('gets no job any more from a claim that was open when it was revoked in the database', async () => {
    const tenant = newTenant();
    const made = await keyOf({ tenant, scopes: ['work', 'read'] });
    const { key } = made;
    const body = { name: 'w', queues: ['default'], slots: 1, targets: ['handler'], tasks: ['t'], labels: {} };
    const { workerId } = await node.get<{ workerId: string }>('POST', '/v1/workers', { key, body });
    const claim = node.ask<{ jobs?: unknown[] }>('POST', `/v1/workers/${workerId}/claim`, {
      ...{ key, body: { max: 1, wait: '20s' } },
    });
    const client = new pg.Client({ connectionString: node.database.url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('DELETE FROM punctual.api_keys WHERE id = $1', [made.id]);
    await vi.waitFor(async () => expect((await node.ask('GET', '/v1/jobs', { key })).status).toBe(401), {
      timeout: 5_000,
    });
    await node.submit({ task: 't', payload: 'not for it' }, tenant);
    const answer = await claim;
    expect([200, 401]).toContain(answer.status);
    expect(answer.body.jobs ?? []).toEqual([]);
  }, 30_000);

  it('is refused by all nodes within about a second, and ends what waits with it', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop(), 30_000);
    const nodes = [await nodeForTest({ database }), await nodeForTest({ database })] as const;
    const made = await keyOf({ tenant: 'acme', scopes: ['submit', 'read', 'work'] }, {}, nodes[0]);
    const { key } = made;
    const job = await nodes[0].get<Job>('POST', '/v1/jobs', { key, body: { task: 'never' } });
    const registration = {
      ...{ name: 'w', queues: ['default'], slots: 1, targets: ['handler'], tasks: ['other'], labels: {} },
    };
    const { workerId } = await nodes[1].get<{ workerId: string }>('POST', '/v1/workers', {
      key,
      body: registration,
    });
    const begun = performance.now();
    const waits = nodes.flatMap((each) => [
      each.ask('GET', `/v1/jobs/${job.id}?wait=20s`, { key }),
      each.ask('POST', `/v1/workers/${workerId}/claim`, { key, body: { max: 1, wait: '20s' } }),
    ]);
    await nodes[0].get('DELETE', `/v1/keys/${made.id}`);
    for (const answer of await Promise.all(waits)) expect(answer.status).toBe(401);
    expect(performance.now() - begun).toBeLessThan(10_000);
    for (const each of nodes) expect((await each.ask('GET', '/v1/jobs', { key })).status).toBe(401);
  }, 40_000);
});

it('whoever changes keys all the time does not keep the workers of others from their jobs', async () => {
  const own = await nodeForTest();
  await vi.waitFor(() => expect(own.node.leads()).toBe(true));
  const worker = await keyOf({ tenant: 'calm', scopes: ['work', 'submit', 'read'] }, {}, own);
  const { key } = worker;
  const body = { name: 'w', queues: ['default'], slots: 1, targets: ['handler'], tasks: ['t'], labels: {} };
  const { workerId } = await own.get<{ workerId: string }>('POST', '/v1/workers', { key, body });
  const { sessions } = (own.node.context.shards[0].currentLeader() as unknown as { state: LeaderState })
    .state;
  for (let round = 0; round < 40; round++) {
    const claim = own.get<{ jobs: Assignment[] }>('POST', `/v1/workers/${workerId}/claim`, {
      ...{ key, body: { max: 1, wait: '20s' } },
    });
    await vi.waitFor(() => expect(sessions.get(workerId)!.polls.size).toBe(1), { interval: 1 });
    // The node learns of the change by the first use of the new key, or by being told of a revocation.
    const made = await keyOf({ tenant: 'busy', scopes: ['read'] }, {}, own);
    await own.get('GET', '/v1/jobs', { key: made.key });
    if (round % 2 === 0) await own.get('DELETE', `/v1/keys/${made.id}`);
    const job = await own.get<Job>('POST', '/v1/jobs', { body: { task: 't' }, tenant: 'calm' });
    const { jobs } = await claim;
    expect(jobs.map(({ jobId, fence }) => [jobId, fence])).toEqual([[job.id, 1]]);
    const results = [{ jobId: job.id, fence: 1, outcome: 'succeeded', result: null }];
    await own.get('POST', `/v1/workers/${workerId}/report`, { key, body: { results } });
  }
}, 60_000);

it('rotating makes no more keys than there may be, and forgets those that expired long ago', async () => {
  const tenant = newTenant();
  const { id } = await keyOf({ tenant, scopes: ['read'] });
  const { pool } = node.node.context.shards[0];
  const fill = (count: number, expiresAt: number | null) =>
    pool.query(
      `INSERT INTO punctual.api_keys (id, name, hash, operator, created_at, tenant, scopes, expires_at)
       SELECT gen_random_uuid(), 'other', sha256((i || $1)::bytea), false, 1, $1, '{read}', $3
       FROM generate_series(1, $2) i`,
      [tenant, count, expiresAt],
    );
  await fill(9_999, null);
  const rotate = () => node.ask('POST', `/v1/keys/${id}/rotate`);
  expect(await rotate()).toMatchObject({ status: 429, body: { code: 'QUOTA_EXCEEDED' } });
  await pool.query(`DELETE FROM punctual.api_keys WHERE tenant = $1 AND name = 'other'`, [tenant]);
  await fill(50, 1_000);
  expect((await rotate()).status).toBe(201);
  const { rows } = await pool.query('SELECT id FROM punctual.api_keys WHERE tenant = $1', [tenant]);
  expect(rows).toHaveLength(2);
});

it('a key with the longest names is taken for the same by every node', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const first = await nodeForTest({ database });
  await vi.waitFor(() => expect(first.node.leads()).toBe(true));
  const second = await nodeForTest({ database });
  const names = (letter: string) =>
    Array.from({ length: 20 }, (_, i) => letter.repeat(126) + String(i).padStart(2, '0'));
  const [queues, tasks] = [names('q'), names('t')];
  const rights = { name: '😀'.repeat(128), tenant: 't'.repeat(128), scopes: ['work', 'admin'] as const };
  const { key } = await keyOf({ ...rights, queues, tasks }, {}, first);
  const worker = { name: 'w', slots: 1, targets: ['handler'], labels: {} };
  const body = { ...worker, queues: queues.slice(1), tasks: tasks.slice(1) };
  for (const each of [first, second])
    expect((await each.ask('POST', '/v1/workers', { key, body })).status).toBe(201);
});

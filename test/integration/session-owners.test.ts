import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { KeyScope, NewKeyView } from '../../src/core/access.js';
import type { ClaimAnswer, ClusterView, Page, WorkerView, WorkerWelcome } from '../../src/core/wire.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { TestClock } from '../test-clock.js';

const REGISTRATION = {
  ...{ name: 'w', queues: ['default'], slots: 5, targets: ['handler'], tasks: ['work'], labels: {} },
};

async function keyFor(
  node: TestNode,
  tenant: string,
  scopes: readonly KeyScope[] = ['work', 'read', 'admin'],
) {
  const body = { name: `of ${tenant}`, tenant, scopes };
  return (await node.get<NewKeyView>('POST', '/v1/keys', { body })).key;
}

async function register(
  node: TestNode,
  key: string | undefined,
  shared: boolean,
  tenant?: string,
): Promise<string> {
  const body = { ...REGISTRATION, shared };
  const ask = { body, ...(key !== undefined && { key }), ...(tenant !== undefined && { tenant }) };
  return (await node.get<WorkerWelcome>('POST', '/v1/workers', ask)).workerId;
}

/** What a key is answered that speaks for a worker in every way. */
async function speaksFor(node: TestNode, key: string, workerId: string): Promise<unknown[]> {
  const of = async (method: string, path: string, body?: unknown) => {
    const answer = await node.ask(method, path, { key, ...(body !== undefined && { body }) });
    return [answer.status, answer.body.code];
  };
  const path = `/v1/workers/${workerId}`;
  return [
    await of('POST', `${path}/claim`, { max: 5, wait: '0s' }),
    await of('POST', `${path}/heartbeat`, { epoch: 1, running: [] }),
    await of('GET', path),
    await of('POST', `${path}/drain`),
    await of('DELETE', path),
  ];
}

const UNKNOWN = Array.from({ length: 5 }, () => [404, 'WORKER_NOT_FOUND']);

it("an operator's session is not there for tenants, not for the one that its operator named either", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const first = await nodeForTest({ database });
  const ofDefault = await keyFor(first, 'default');
  const shared = await register(first, undefined, true);
  await first.submit({ task: 'work', payload: 'a secret of acme' }, 'acme');
  expect(await speaksFor(first, ofDefault, shared)).toEqual(UNKNOWN);
  const list = await first.get<Page<WorkerView>>('GET', '/v1/workers', { key: ofDefault });
  expect(list.data).toEqual([]);
  const ids = await first.get<{ ids: string[] }>('GET', `/v1/ids?kind=worker&prefix=${shared}`, {
    key: ofDefault,
  });
  expect(ids.ids).toEqual([]);
  // Nor under the next leader, which reads whose it is from the database.
  await first.stop();
  const next = await nodeForTest({ database });
  expect(await speaksFor(next, ofDefault, shared)).toEqual(UNKNOWN);
  const claimed = await next.get<ClaimAnswer>('POST', `/v1/workers/${shared}/claim`, {
    body: { max: 5, wait: '10s' },
  });
  expect(claimed.jobs.map(({ payload }) => payload)).toEqual(['a secret of acme']);
}, 60_000);

it("an operator's session for one tenant serves that tenant, and is not there for its keys either", async () => {
  const node = await nodeForTest();
  const worker = await register(node, undefined, false, 'acme');
  expect(await speaksFor(node, await keyFor(node, 'acme'), worker)).toEqual(UNKNOWN);
  await node.submit({ task: 'work' }, 'globex');
  await node.submit({ task: 'work', payload: 1 }, 'acme');
  const ask = { tenant: 'acme', body: { max: 5, wait: '10s' } };
  const { jobs } = await node.get<ClaimAnswer>('POST', `/v1/workers/${worker}/claim`, ask);
  expect(jobs.map(({ payload }) => payload)).toEqual([1]);
});

it("a tenant's session serves that tenant, is there for its keys, and for no other tenant", async () => {
  const node = await nodeForTest();
  const [acme, globex] = [await keyFor(node, 'acme'), await keyFor(node, 'globex')];
  const worker = await register(node, acme, false);
  await node.submit({ task: 'work', payload: 'of globex' }, 'globex');
  await node.submit({ task: 'work', payload: 'of acme' }, 'acme');
  expect(await speaksFor(node, globex, worker)).toEqual(UNKNOWN);
  const path = `/v1/workers/${worker}/claim`;
  const { jobs } = await node.get<ClaimAnswer>('POST', path, { key: acme, body: { max: 5, wait: '10s' } });
  expect(jobs.map(({ payload }) => payload)).toEqual(['of acme']);
  const body = { ...REGISTRATION, shared: true };
  expect(await node.ask('POST', '/v1/workers', { key: acme, body })).toMatchObject({ status: 403 });
  // A replacement of another tenant's session is none.
  const replacing = { ...REGISTRATION, replaces: worker };
  expect((await node.ask('POST', '/v1/workers', { key: globex, body: replacing })).status).toBe(201);
  const seen = await node.get<WorkerView>('GET', `/v1/workers/${worker}`, { key: acme });
  expect(seen.state).toBe('alive');
});

it('an operator is shown the workers of all tenants, or of the one it names', async () => {
  const node = await nodeForTest();
  const acme = await register(node, await keyFor(node, 'acme'), false);
  const globex = await register(node, await keyFor(node, 'globex'), false);
  const shared = await register(node, undefined, true);
  const list = async (tenant?: string) => {
    const ask = tenant === undefined ? {} : { tenant };
    return (await node.get<Page<WorkerView>>('GET', '/v1/workers', ask)).data.map(({ id }) => id);
  };
  expect(await list()).toEqual([shared, globex, acme]);
  expect(await list('acme')).toEqual([acme]);
  const drained = await node.get<WorkerView>('POST', `/v1/workers/${globex}/drain`);
  expect(drained).toMatchObject({ id: globex, state: 'draining' });
});

it("a higher epoch is believed from an operator's session, and from a tenant's only if the database agrees", async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock });
  const epoch = async () => (await node.get<ClusterView>('GET', '/v1/cluster')).shards[0]!.epoch;
  await expect.poll(() => node.node.leads()).toBe(true);
  // A term that has just begun is not ended by any heartbeat.
  clock.advance(60_000);
  const acme = await keyFor(node, 'acme');
  const worker = await register(node, acme, false);
  const shared = await register(node, undefined, true);
  const before = await epoch();
  const heartbeat = async (id: string, key = acme) => {
    const body = { epoch: before + 1, running: [] };
    return (await node.ask('POST', `/v1/workers/${id}/heartbeat`, { key, body })).status;
  };
  expect(await heartbeat(worker)).toBe(200);
  expect(await heartbeat('0198c0de-0000-7000-8000-00000000beef')).toBe(404);
  // Neither from somebody who names the session of an operator.
  expect(await heartbeat(shared)).toBe(404);
  expect(await epoch()).toBe(before);
  expect(await heartbeat(shared, node.apiKey)).toBe(503);
  await expect.poll(epoch, { timeout: 15_000 }).toBeGreaterThan(before);
}, 40_000);

it('sessions that served all tenants before belong to the operator after the migration', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const migration = await readFile(
    new URL('../../src/store/migrations/014-access.sql', import.meta.url),
    'utf8',
  );
  const update = migration.slice(migration.lastIndexOf('UPDATE punctual.workers'));
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  const registrations = [
    { ...REGISTRATION, shared: true },
    { ...REGISTRATION, shared: false },
    { ...REGISTRATION, name: '"shared":true', labels: { shared: 'true' } },
    REGISTRATION,
  ];
  for (const registration of registrations) {
    await client.query(
      `INSERT INTO punctual.workers (id, tenant, name, state, registration, registered_at, last_seen)
       VALUES (gen_random_uuid(), 'default', 'w', 'alive', $1, 0, 0)`,
      [JSON.stringify(registration)],
    );
  }
  await client.query(update);
  const { rows } = await client.query('SELECT registration FROM punctual.workers WHERE operator');
  expect(rows).toEqual([{ registration: registrations[0] }]);
});

it("a tenant is not shown what an operator was answered, whatever the operator's Idempotency-Key", async () => {
  const node = await nodeForTest();
  const key = await keyFor(node, 'acme');
  const path = `/v1/workers/${await register(node, undefined, false, 'acme')}/drain`;
  const headers = { 'idempotency-key': 'drain' };
  expect((await node.ask('POST', path, { tenant: 'acme', headers })).status).toBe(200);
  expect(await node.ask('POST', path, { key, headers })).toMatchObject({
    status: 422,
    body: { code: 'IDEMPOTENCY_KEY_REUSED' },
  });
});

import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { uuidv7 } from '../../src/core/uuid.js';
import type { Page, QueueView, WorkerView } from '../../src/core/wire.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, TestNode, type TestTenant } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';

const REGISTRATION = {
  ...{ name: 'w', queues: ['default'], slots: 1 },
  ...{ targets: ['handler'], tasks: [], labels: {} },
};

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** Sessions that have died, the registration of each with so many tasks. */
async function bury(tenant: TestTenant, count: number, tasks: number): Promise<void> {
  const registration = {
    ...REGISTRATION,
    tasks: Array.from({ length: tasks }, (_, n) => `${'t'.repeat(100)}${n}`),
  };
  const ids = Array.from({ length: count }, (_, n) => uuidv7(Date.now() - 60_000 + n));
  await withClient(node.database.url, (client) =>
    client.query(
      `INSERT INTO punctual.workers (id, tenant, name, state, registration, registered_at, last_seen)
       SELECT id, $2, 'dead', 'dead', $3, $4, $4 FROM unnest($1::uuid[]) u(id)`,
      [ids, tenant.tenant, JSON.stringify(registration), Date.now()],
    ),
  );
}

async function readAll<T>(tenant: TestTenant, path: string): Promise<{ items: T[]; pages: number }> {
  const items: T[] = [];
  let pages = 0;
  for (let query = ''; ; ) {
    const page = await tenant.get<Page<T>>('GET', `${path}${query}`);
    items.push(...page.data);
    pages += 1;
    if (page.next === null) return { items, pages };
    query = `?after=${page.next}`;
  }
}

it('a worker that came after ten thousand others is seen', async () => {
  const tenant = node.newTenant();
  await bury(tenant, 10_000, 0);
  const worker = await ProtocolWorker.register(node, {}, tenant.tenant);
  expect(await tenant.get('GET', `/v1/workers/${worker.id}`)).toMatchObject({ state: 'alive' });
  const { data, next } = await tenant.get<Page<WorkerView>>('GET', '/v1/workers');
  expect(data[0]).toMatchObject({ id: worker.id, state: 'alive' });
  expect(data).toHaveLength(1_000);
  expect(next).toBe(data.at(-1)!.id);
  const { items } = await readAll<WorkerView>(tenant, '/v1/workers');
  // Those that are older may be forgotten meanwhile.
  expect(items.length).toBeGreaterThan(1_000);
  expect(new Set(items.map(({ id }) => id)).size).toBe(items.length);
  expect((await tenant.ask('GET', '/v1/workers?after=x')).status).toBe(422);
});

it('workers with large registrations come in pages that are bounded in bytes', async () => {
  const tenant = node.newTenant();
  await bury(tenant, 60, 1_000);
  const { items, pages } = await readAll<WorkerView>(tenant, '/v1/workers');
  expect(new Set(items.map(({ id }) => id)).size).toBe(60);
  expect(pages).toBeGreaterThan(5);
  expect(pages).toBeLessThan(10);
});

it('a registration that is too large is refused', async () => {
  const tenant = node.newTenant();
  const tasks = Array.from({ length: 10_000 }, (_, n) => `${'t'.repeat(100)}${n}`);
  const body = { ...REGISTRATION, tasks };
  expect((await tenant.ask('POST', '/v1/workers', { body })).status).toBe(413);
});

it('a new leader takes over as many sessions as a tenant may have, and lets no more come', async () => {
  const database = await createTestDatabase();
  const ids = Array.from({ length: 10_000 }, (_, n) => uuidv7(Date.now() + n));
  await withClient(database.url, (client) =>
    client.query(
      `INSERT INTO punctual.workers (id, tenant, name, state, registration, registered_at, last_seen, operator)
       SELECT id, 'default', 'w', 'alive', $2, 0, 0, true FROM unnest($1::uuid[]) u(id)`,
      [ids, JSON.stringify(REGISTRATION)],
    ),
  );
  const crowded = await nodeForTest({ database });
  onTestFinished(() => database.drop());
  const last = await crowded.get('GET', `/v1/workers/${ids.at(-1)}`);
  expect(last).toMatchObject({ state: 'alive' });
  const answer = await crowded.ask('POST', '/v1/workers', { body: REGISTRATION });
  expect(answer).toMatchObject({ status: 429, body: { code: 'TOO_MANY_WORKERS' } });
  const again = { ...REGISTRATION, replaces: ids[0] };
  expect((await crowded.ask('POST', '/v1/workers', { body: again })).status).toBe(201);
  const others = { body: REGISTRATION, tenant: 'other' };
  expect((await crowded.ask('POST', '/v1/workers', others)).status).toBe(201);
});

it('queues come in pages, by name', async () => {
  const tenant = node.newTenant();
  await withClient(node.database.url, (client) =>
    client.query(
      `INSERT INTO punctual.queues (tenant, name, created_at)
       SELECT $1, 'q' || lpad(n::text, 5, '0'), 0 FROM generate_series(1, 2500) n`,
      [tenant.tenant],
    ),
  );
  const { items, pages } = await readAll<QueueView>(tenant, '/v1/queues');
  expect(pages).toBe(3);
  expect(items.map(({ name }) => name)).toEqual(
    Array.from({ length: 2_500 }, (_, n) => `q${String(n + 1).padStart(5, '0')}`),
  );
  const page = await tenant.get<Page<QueueView>>('GET', '/v1/queues?limit=2&after=q00010');
  expect(page.data.map(({ name }) => name)).toEqual(['q00011', 'q00012']);
});

it('registrations are bounded in bytes, however many come at once, and equal ones are kept once', async () => {
  const tenant = node.newTenant();
  const tasks = (kind: string) =>
    Array.from({ length: 2_000 }, (_, n) => `${kind}${'t'.repeat(110)}${String(n).padStart(4, '0')}`);
  const register = (kind: string) =>
    tenant.ask('POST', '/v1/workers', { body: { ...REGISTRATION, tasks: tasks(kind) } });
  const statuses: number[] = [];
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => register(`${round}-${n}-`)));
    statuses.push(...answers.map(({ status }) => status));
  }
  // 32 MiB of some 240 KiB each.
  const taken = statuses.filter((status) => status === 201).length;
  expect(taken).toBeGreaterThan(120);
  expect(taken).toBeLessThan(150);
  expect(statuses.filter((status) => status !== 201).every((status) => status === 429)).toBe(true);
  await ProtocolWorker.register(node, {}, node.newTenant().tenant);
});

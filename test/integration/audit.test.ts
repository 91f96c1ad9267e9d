import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { AuditView } from '../../src/core/audit.js';
import type { Page } from '../../src/core/wire.js';
import { createOperatorKey } from '../../src/store/operator-key.js';
import { TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** Each kind of action leaves exactly one entry that says who did what to what. */
let node: TestNode;
let keyId: string;

beforeAll(async () => {
  node = await TestNode.start();
  const { data } = await node.get<Page<{ id: string; name: string }>>('GET', '/v1/keys');
  keyId = data.find(({ name }) => name === 'tester')!.id;
});
afterAll(() => node.stop());

/** The entries about a subject, oldest first. */
async function entriesOf(subject: string, tenant?: string): Promise<AuditView[]> {
  const path = `/v1/audit?subject=${encodeURIComponent(subject)}`;
  const { data } = await node.get<Page<AuditView>>('GET', path, tenant === undefined ? {} : { tenant });
  return [...data].reverse();
}

it('pausing a queue leaves an entry with who, from where, when, what, before and after', async () => {
  const tenant = node.newTenant();
  await tenant.submit({ task: 'work', queue: 'mail' });
  const { headers } = await tenant.ask('POST', '/v1/queues/mail/pause');
  expect(await entriesOf('mail', tenant.tenant)).toEqual([
    expect.objectContaining({
      ...{ tenant: tenant.tenant, keyId, keyName: 'tester', address: '127.0.0.1' },
      ...{ requestId: headers.get('request-id'), action: 'queue.pause', kind: 'queue', subject: 'mail' },
      outcome: 'done',
      before: { paused: false, weight: 1, concurrency: null, keyConcurrency: 1, rate: null },
      after: { paused: true, weight: 1, concurrency: null, keyConcurrency: 1, rate: null },
    }),
  ]);
  const refused = await tenant.ask('POST', '/v1/queues/mail/pause');
  expect(refused.status).toBe(409);
  expect(await entriesOf('mail', tenant.tenant)).toHaveLength(1);
  await vi.waitFor(
    async () => {
      const [entry] = await entriesOf('mail', tenant.tenant);
      expect(entry).toMatchObject({
        sequence: expect.any(Number),
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
    },
    { timeout: 10_000 },
  );
});

const ANY_JOB = { task: 'work', queue: 'default', key: null, priority: 5, attempt: 0 };
const hashOf = (text: string) => ({ sha256: createHash('sha256').update(text).digest('hex') });

/** The one entry about a subject after an action. */
async function entryAfter(subject: string, tenant: string, act: () => Promise<unknown>): Promise<AuditView> {
  const before = await entriesOf(subject, tenant);
  await act();
  const after = await entriesOf(subject, tenant);
  expect(after.slice(0, before.length).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  expect(after).toHaveLength(before.length + 1);
  const entry = after.at(-1)!;
  expect(entry).toMatchObject({ tenant, keyId, keyName: 'tester', address: '127.0.0.1', outcome: 'done' });
  return entry;
}

it('steering one job leaves one entry each, with hashes in place of payloads', async () => {
  const tenant = node.newTenant();
  const runAt = '2035-01-01T00:00:00.000Z';
  const { id } = await tenant.submit({ task: 'work', payload: { secret: 'x' }, delay: '30s' });
  const act = (verb: string) =>
    entryAfter(id, tenant.tenant, () => tenant.get('POST', `/v1/jobs/${id}/${verb}`));
  const payload = hashOf('{"secret":"x"}');
  expect(await act('hold')).toMatchObject({
    ...{ action: 'job.hold', kind: 'job', subject: id },
    before: { ...ANY_JOB, state: 'pending', hold: false, payload },
    after: { ...ANY_JOB, state: 'pending', hold: true, payload },
  });
  expect(await act('release')).toMatchObject({
    action: 'job.release',
    before: { hold: true },
    after: { hold: false },
  });
  const body = { priority: 9, runAt, payload: 'new' };
  const change = await entryAfter(id, tenant.tenant, () => tenant.get('PATCH', `/v1/jobs/${id}`, { body }));
  expect(change).toMatchObject({
    action: 'job.change',
    before: { priority: 5, payload },
    after: { priority: 9, runAt, payload: hashOf('"new"') },
  });
  expect(await act('cancel')).toMatchObject({
    ...{ action: 'job.cancel', before: { state: 'pending' }, after: { state: 'cancelled' } },
  });
  expect(await act('retry')).toMatchObject({
    ...{ action: 'job.retry', before: { state: 'cancelled' }, after: { state: 'pending' } },
  });
  expect(JSON.stringify(await entriesOf(id, tenant.tenant))).not.toContain('secret');
});

it('cancelling a running job is recorded once, when it is asked for', async () => {
  const tenant = node.newTenant();
  const worker = await ProtocolWorker.register(node, {}, tenant.tenant);
  const { id } = await tenant.submit({ task: 'work' });
  await worker.claimOne();
  const cancel = () => tenant.get('POST', `/v1/jobs/${id}/cancel`);
  expect(await entryAfter(id, tenant.tenant, cancel)).toMatchObject({
    ...{
      action: 'job.cancel',
      before: { state: 'running' },
      after: { state: 'running', cancelRequested: true },
    },
  });
  const drain = () => tenant.get('POST', `/v1/workers/${worker.id}/drain`);
  expect(await entryAfter(worker.id, tenant.tenant, drain)).toMatchObject({
    ...{ action: 'worker.drain', kind: 'worker', before: { draining: false }, after: { draining: true } },
  });
});

it('changing many jobs leaves one entry with the filter and the count', async () => {
  const tenant = node.newTenant();
  for (let n = 0; n < 3; n++) await tenant.submit({ task: 'many', delay: '30s' });
  const many = (verb: string, subject = 'filter') => {
    const body = { filter: { task: 'many' } };
    return entryAfter(subject, tenant.tenant, () => tenant.get('POST', `/v1/jobs/${verb}`, { body }));
  };
  for (const verb of ['hold', 'release', 'cancel']) {
    expect(await many(verb)).toMatchObject({
      ...{ action: `jobs.${verb}`, kind: 'jobs', before: { search: { task: 'many' } } },
      after: { matched: 3, changed: 3, refused: 0, next: null },
    });
  }
  expect(await many('redrive')).toMatchObject({ action: 'jobs.redrive', after: { changed: 0 } });
  expect(await many('delete')).toMatchObject({ action: 'jobs.delete', after: { changed: 3 } });
  const dryRun = { body: { filter: { task: 'many' }, dryRun: true } };
  await tenant.get('POST', '/v1/jobs/cancel', dryRun);
  expect(await entriesOf('filter', tenant.tenant)).toHaveLength(5);
});

it('values of payloads in a filter are shown as their hashes', async () => {
  const tenant = node.newTenant();
  await tenant.submit({ task: 'many', delay: '30s', payload: { card: 'a secret' } });
  const body = { filter: { payload: { card: 'a secret' } } };
  const entry = await entryAfter('filter', tenant.tenant, () =>
    tenant.get('POST', '/v1/jobs/cancel', { body }),
  );
  expect(entry).toMatchObject({
    before: { search: { payload: [{ path: ['card'], value: hashOf('a secret') }] } },
    after: { changed: 1 },
  });
});

it('changes of schedules are recorded, also those that a program makes', async () => {
  const tenant = node.newTenant();
  const schedule = { name: 'nightly', task: 'work', cron: '0 3 * * *', payload: { secret: 'x' } };
  const act = (method: string, path: string, body?: unknown) =>
    entryAfter('nightly', tenant.tenant, () =>
      tenant.get(method, `/v1/schedules${path}`, body === undefined ? {} : { body }),
    );
  const created = await act('POST', '', schedule);
  expect(created).toMatchObject({
    ...{ action: 'schedule.create', kind: 'schedule', before: null },
    after: { task: 'work', paused: false, payload: hashOf('{"secret":"x"}') },
  });
  expect(await act('PATCH', '/nightly', { cron: '0 4 * * *' })).toMatchObject({
    ...{ action: 'schedule.change', before: { cron: '0 3 * * *' }, after: { cron: '0 4 * * *' } },
  });
  expect(await act('POST', '/nightly/pause')).toMatchObject({
    ...{ action: 'schedule.pause', before: { paused: false }, after: { paused: true } },
  });
  expect(await act('POST', '/nightly/resume')).toMatchObject({
    action: 'schedule.resume',
    after: { paused: false },
  });
  expect(await act('POST', '/nightly/run')).toMatchObject({
    ...{ action: 'schedule.run', after: { job: expect.any(String) } },
  });
  const past = {
    from: new Date(Date.now() - 2_000).toISOString(),
    to: new Date(Date.now() - 1_000).toISOString(),
  };
  expect(await act('POST', '/nightly/backfill', past)).toMatchObject({
    ...{ action: 'schedule.backfill', before: past, after: { started: 0 } },
  });
  expect(await act('DELETE', '/nightly')).toMatchObject({ action: 'schedule.delete', after: null });
  const apply = (schedules: unknown[]) =>
    entryAfter('managed', tenant.tenant, () =>
      tenant.get('PUT', '/v1/schedules', { body: { managedBy: 'shop', schedules, prune: true } }),
    );
  const managed = { name: 'managed', task: 'work', every: '1h' };
  expect(await apply([managed])).toMatchObject({ action: 'schedule.create', after: { managedBy: 'shop' } });
  expect(await apply([{ ...managed, every: '2h' }])).toMatchObject({ action: 'schedule.change' });
  expect(await apply([])).toMatchObject({ action: 'schedule.prune', after: null });
});

it('tenants, queues, keys and the cluster are recorded, and no key is ever shown', async () => {
  const tenant = 'audited';
  const body = { id: tenant, weight: 2 };
  expect(await entryAfter(tenant, tenant, () => node.get('POST', '/v1/tenants', { body }))).toMatchObject({
    action: 'tenant.create',
    before: null,
    after: { name: tenant, weight: 2, rate: null },
  });
  expect(
    await entryAfter(tenant, tenant, () =>
      node.get('PATCH', `/v1/tenants/${tenant}`, { body: { weight: 3 } }),
    ),
  ).toMatchObject({ action: 'tenant.change', before: { weight: 2 }, after: { weight: 3 } });
  const limit = () => node.get('PATCH', '/v1/queues/fresh', { body: { concurrency: 5 }, tenant });
  expect(await entryAfter('fresh', tenant, limit)).toMatchObject({
    ...{ action: 'queue.change', before: null, after: { paused: false, concurrency: 5 } },
  });
  const made = await node.get<{ id: string; key: string }>('POST', '/v1/keys', {
    ...{ body: { name: 'shop', scopes: ['read', 'admin'] }, tenant },
  });
  const rotated = await node.get<{ id: string; key: string }>('POST', `/v1/keys/${made.id}/rotate`, {
    tenant,
  });
  await node.get('DELETE', `/v1/keys/${made.id}`, { tenant });
  const entries = await entriesOf(made.id, tenant);
  expect(entries).toMatchObject([
    { action: 'key.create', before: null, after: { name: 'shop', tenant, scopes: ['read', 'admin'] } },
    { action: 'key.rotate', before: { id: made.id }, after: { id: rotated.id } },
    { action: 'key.revoke', before: { id: made.id }, after: null },
  ]);
  for (const { key } of [made, rotated]) expect(JSON.stringify(entries)).not.toContain(key);
  await node.get('POST', '/v1/cluster/pause');
  await node.get('POST', '/v1/cluster/resume');
  const { data } = await node.get<Page<AuditView>>('GET', '/v1/audit?kind=cluster');
  expect(data.map(({ action, tenant: owner }) => [action, owner])).toEqual([
    ['cluster.resume', null],
    ['cluster.pause', null],
  ]);
});

it('a tenant reads its own entries only, and only with the scope admin', async () => {
  const mine = node.newTenant();
  const other = node.newTenant();
  for (const tenant of [mine, other]) {
    await tenant.submit({ task: 'work', queue: 'mail' });
    await tenant.get('POST', '/v1/queues/mail/pause');
  }
  const keyWith = (scopes: string[], rest: object = {}) =>
    mine.get<{ key: string }>('POST', '/v1/keys', { body: { name: scopes.join(), scopes, ...rest } });
  const admin = await keyWith(['admin']);
  const page = await node.get<Page<AuditView>>('GET', '/v1/audit', { key: admin.key });
  expect(new Set(page.data.map(({ tenant }) => tenant))).toEqual(new Set([mine.tenant]));
  expect(page.data.map(({ action }) => action)).toEqual(['key.create', 'queue.pause']);
  const asOther = await node.ask('GET', '/v1/audit', { key: admin.key, tenant: other.tenant });
  expect(asOther.status).toBe(403);
  expect((await node.ask('GET', '/v1/audit/chain', { key: admin.key })).status).toBe(403);
  const reader = await keyWith(['read', 'submit']);
  expect((await node.ask('GET', '/v1/audit', { key: reader.key })).status).toBe(403);
  const restricted = await keyWith(['admin'], { queues: ['letters'] });
  expect((await node.ask('GET', '/v1/audit', { key: restricted.key })).status).toBe(403);
  const all = await node.get<Page<AuditView>>('GET', '/v1/audit?action=queue.pause');
  const owners = all.data.map(({ tenant }) => tenant);
  expect(owners).toEqual(expect.arrayContaining([mine.tenant, other.tenant]));
});

it('filters by time, key, action and subject, page by page', async () => {
  const tenant = node.newTenant();
  await tenant.submit({ task: 'work', queue: 'mail' });
  for (const verb of ['pause', 'resume', 'pause']) await tenant.get('POST', `/v1/queues/mail/${verb}`);
  const list = (query: string) => tenant.get<Page<AuditView>>('GET', `/v1/audit?${query}`);
  const count = async (query: string) => (await list(query)).data.length;
  const first = await list('limit=2');
  expect(first.data.map(({ action }) => action)).toEqual(['queue.pause', 'queue.resume']);
  const second = await list(`limit=2&after=${first.next}`);
  expect(second).toMatchObject({ data: [{ action: 'queue.pause' }], next: null });
  expect(await count('action=queue.resume')).toBe(1);
  expect(await count('kind=queue&subject=mail')).toBe(3);
  expect(await count('subject=other')).toBe(0);
  expect(await count(`key=${keyId}`)).toBe(3);
  expect(await count('key=00000000-0000-7000-8000-000000000000')).toBe(0);
  expect(await count('since=1h')).toBe(3);
  expect(await count('until=1h')).toBe(0);
  expect((await tenant.ask('GET', '/v1/audit?after=nonsense')).status).toBe(422);
  expect((await tenant.ask('GET', '/v1/audit?order=chain&after=x')).status).toBe(422);
});

it.each([
  ['format=ndjson', {}],
  ['', { accept: 'application/x-ndjson' }],
])('streams lines of JSON in the order of the chain (%s)', async (query, headers) => {
  const tenant = node.newTenant();
  await tenant.submit({ task: 'work', queue: 'mail' });
  for (const verb of ['pause', 'resume']) await tenant.get('POST', `/v1/queues/mail/${verb}`);
  const lines = await vi.waitFor(
    async () => {
      const { body, headers: sent } = await tenant.ask<string>('GET', `/v1/audit?${query}`, { headers });
      expect(sent.get('content-type')).toContain('application/x-ndjson');
      const found = body.split('\n').slice(0, -1);
      expect(found).toHaveLength(2);
      return found;
    },
    { timeout: 10_000 },
  );
  const entries = lines.map((line): AuditView => JSON.parse(line));
  expect(entries.map(({ action }) => action)).toEqual(['queue.pause', 'queue.resume']);
  for (const line of lines) {
    const { hash } = JSON.parse(line);
    expect(hashOf(line.replace(`,"hash":"${hash}"}`, '}')).sha256).toBe(hash);
  }
});

it('a key that is made in the database has the time of the database, whatever clock the command sees', async () => {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.UTC(2001, 0, 1));
  const { id } = await createOperatorKey(node.database.url, 'elsewhere').finally(() => clock.mockRestore());
  const [entry] = await entriesOf(id);
  expect(entry!.action).toBe('key.create');
  expect(Math.abs(Date.parse(entry!.at) - Date.now())).toBeLessThan(3_600_000);
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { uuidv7 } from '../../src/core/uuid.js';
import type { Page, StatsView } from '../../src/core/wire.js';
import { TestNode } from '../node-for-tests.js';
import { countPlaces, withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** One node for all; each test has a tenant of its own. */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const bulk = (jobs: readonly unknown[], tenant: string) =>
  node.ask<{ ids: string[]; code?: string; errors?: { pointer: string }[] }>('POST', '/v1/jobs/bulk', {
    body: { jobs },
    tenant,
  });

it('the same key again is the same job, and the answer says in what the submission differs', async () => {
  const tenant = 'same';
  const first = await node.ask('POST', '/v1/jobs', { body: { task: 'a', key: 'order-42' }, tenant });
  const again = await node.ask('POST', '/v1/jobs', {
    body: { task: 'b', key: 'order-42', payload: 'other', delay: '1h' },
    tenant,
  });
  expect(first.status).toBe(201);
  expect(first.headers.get('location')).toBe(`/v1/jobs/${first.body.id}`);
  expect(first.body).toMatchObject({ repeated: false, replaced: false, differs: [] });
  expect(again.status).toBe(200);
  const differs = ['task', 'payload', 'runAt'];
  expect(again.body).toEqual({ ...first.body, repeated: true, differs });
  const same = await node.ask('POST', '/v1/jobs', { body: { task: 'a', key: 'order-42' }, tenant });
  expect(same.body).toEqual({ ...first.body, repeated: true });
});

it('the same submission again differs in nothing, whatever it says', async () => {
  const tenant = 'twice-the-same';
  const body = {
    ...{ target: { type: 'handler', name: 'a' }, payload: { text: '\u0000 \ud800' }, key: 'k', delay: '30s' },
    ...{ queue: 'q', priority: 7, timeout: '5m', concurrencyKey: 'c', requires: { region: 'eu' } },
    ...{ retry: { maxAttempts: 2, backoff: { base: '1s' } }, startBefore: '2999-01-01T00:00:00Z' },
  };
  await node.submit(body, tenant);
  for (const hold of [false, true]) {
    const again = await node.ask('POST', '/v1/jobs', { body: { ...body, hold }, tenant });
    expect(again).toMatchObject({ status: 200, body: { repeated: true, differs: hold ? ['hold'] : [] } });
  }
});

it('a key is found while its job waits, runs and has ended, and stays taken', async () => {
  const tenant = 'lookup';
  const find = () => node.get<Page<Job>>('GET', '/v1/jobs?key=k%2F1', { tenant });
  expect(await find()).toMatchObject({ data: [], next: null, complete: true });
  const { id } = await node.submit({ task: 'work', payload: 1, key: 'k/1', hold: true }, tenant);
  expect((await find()).data).toMatchObject([{ id, state: 'pending', hold: true }]);
  await node.get('POST', `/v1/jobs/${id}/release`, { tenant });
  const worker = await ProtocolWorker.register(node, {}, tenant);
  const job = await worker.claimOne();
  expect((await find()).data).toMatchObject([{ id, state: 'running' }]);
  await worker.succeed(job);
  expect((await find()).data).toMatchObject([{ id, state: 'succeeded' }]);
  const again = await node.ask('POST', '/v1/jobs', { body: { task: 'work', key: 'k/1' }, tenant });
  expect(again).toMatchObject({ status: 200, body: { id, state: 'succeeded' } });
  expect(await node.connect(tenant).getByKey('k/1')).toMatchObject({ id });
});

it('a key whose job went with its day of history is free, before the keys of that day are removed', async () => {
  const tenant = 'removed';
  const gone = ['single', 'bulk'].map((key) => ({ key, id: uuidv7(Date.now()) }));
  await withClient(node.database.url, async (client) => {
    for (const { key, id } of gone) {
      await client.query('INSERT INTO punctual.keys (tenant, key, job) VALUES ($1, $2, $3)', [
        tenant,
        key,
        id,
      ]);
    }
  });
  const single = await node.ask('POST', '/v1/jobs', { body: { task: 'work', key: 'single' }, tenant });
  expect(single).toMatchObject({ status: 201, body: { state: 'pending', key: 'single' } });
  const {
    status,
    body: { ids },
  } = await bulk([{ task: 'work', key: 'bulk' }], tenant);
  expect(status).toBe(201);
  expect(await node.job(ids[0]!, tenant)).toMatchObject({ key: 'bulk' });
});

it('many submissions of one key at the same moment make one job', async () => {
  const tenant = 'race';
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) =>
      node.ask<Job>('POST', '/v1/jobs', { body: { task: 'work', key: 'one', payload: n }, tenant }),
    ),
  );
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(49);
  expect((await node.get<Page<Job>>('GET', '/v1/jobs', { tenant })).data).toHaveLength(1);
});

it('a key in a bulk answers with the job that has it, also twice in the same bulk', async () => {
  const tenant = 'keyed-bulk';
  const earlier = await node.submit({ task: 'a', key: 'x' }, tenant);
  const { body } = await bulk(
    [{ task: 'a' }, { task: 'b', key: 'x' }, { task: 'c', key: 'y' }, { task: 'd', key: 'y' }],
    tenant,
  );
  expect(body.ids).toHaveLength(4);
  expect(body.ids[1]).toBe(earlier.id);
  expect(body.ids[3]).toBe(body.ids[2]);
  expect((await node.get<Page<Job>>('GET', '/v1/jobs', { tenant })).data).toHaveLength(3);
});

it('the same key of two tenants is two jobs', async () => {
  const [a, b] = await Promise.all(
    ['left', 'right'].map((tenant) => node.submit({ task: 'work', key: 'mine' }, tenant)),
  );
  expect(a!.id).not.toBe(b!.id);
});

it('10,000 jobs are stored at once, in order; one more is refused and stores none', async () => {
  const tenant = 'bulk';
  const jobs = Array.from({ length: 10_001 }, (_, n) => ({ task: 'work', payload: n }));
  const refused = await bulk(jobs, tenant);
  expect(refused).toMatchObject({
    status: 422,
    body: { code: 'INVALID_REQUEST', errors: [{ pointer: '/jobs' }] },
  });
  expect((await node.get<Page<Job>>('GET', '/v1/jobs', { tenant })).data).toEqual([]);
  const { status, body } = await bulk(jobs.slice(1), tenant);
  expect(status).toBe(201);
  expect(new Set(body.ids).size).toBe(10_000);
  expect(body.ids).toEqual([...body.ids].sort());
  const some = await Promise.all([0, 4_999, 9_999].map((n) => node.job(body.ids[n]!, tenant)));
  expect(some.map((job) => job.payload)).toEqual([1, 5_000, 10_000]);
});

it('a list gives every job once, newest first, page by page', async () => {
  const tenant = 'pages';
  const { body } = await bulk(
    Array.from({ length: 25 }, (_, n) => ({ task: n % 2 ? 'odd' : 'even', payload: n })),
    tenant,
  );
  const seen: string[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const page: Page<Job> = await node.get('GET', `/v1/jobs?limit=10${after && `&after=${after}`}`, {
      tenant,
    });
    seen.push(...page.data.map((job) => job.id));
    after = page.next;
  }
  expect(seen).toEqual(body.ids.toReversed());
  const odd = await node.get<Page<Job>>('GET', '/v1/jobs?task=odd&state=pending&limit=1000', { tenant });
  expect(odd.data).toHaveLength(12);
  expect(odd.next).toBeNull();
});

it('a bulk with one bad job stores none, and its error names the job', async () => {
  const tenant = 'one-bad';
  const before = await node.get<StatsView>('GET', '/v1/stats');
  const jobs: unknown[] = Array.from({ length: 100 }, () => ({ task: 'work', key: undefined }));
  jobs[57] = { task: 'work', priority: 10, nonsense: true };
  expect(await bulk(jobs, tenant)).toMatchObject({
    status: 422,
    body: {
      code: 'INVALID_REQUEST',
      errors: expect.arrayContaining([
        expect.objectContaining({ pointer: '/jobs/57/priority' }),
        expect.objectContaining({ pointer: '/jobs/57/nonsense' }),
      ]),
    },
  });
  expect((await node.get<Page<Job>>('GET', '/v1/jobs', { tenant })).data).toEqual([]);
  const after = await node.get<StatsView>('GET', '/v1/stats');
  expect(after.jobsSubmitted).toBe(before.jobsSubmitted);
});

it.each([
  ['nothing', {}, '/jobs'],
  ['no jobs', { jobs: [] }, '/jobs'],
  ['one that is not a list', { jobs: { task: 'a' } }, '/jobs'],
  ['an unknown field', { jobs: [{ task: 'a' }], more: 1 }, '/more'],
  ['a job that is none', { jobs: [null] }, '/jobs/0'],
])('a bulk with %s is refused', async (_, body, pointer) => {
  expect(await node.ask('POST', '/v1/jobs/bulk', { body, tenant: 'refused' })).toMatchObject({
    status: 422,
    body: { code: 'INVALID_REQUEST', errors: [{ pointer }] },
  });
});

it('a bulk beyond its size is refused whole, and so is one payload beyond its own', async () => {
  const tenant = 'large';
  const large = 'x'.repeat(250 * 1024);
  const tooMuch = Array.from({ length: 70 }, () => ({ task: 'work', payload: large }));
  expect(await bulk(tooMuch, tenant)).toMatchObject({ status: 413, body: { code: 'BODY_TOO_LARGE' } });
  expect(await bulk([{ task: 'work' }, { task: 'work', payload: large + large }], tenant)).toMatchObject({
    status: 413,
    body: { code: 'PAYLOAD_TOO_LARGE' },
  });
  expect((await node.get<Page<Job>>('GET', '/v1/jobs', { tenant })).data).toEqual([]);
  expect((await bulk(tooMuch.slice(0, 60), tenant)).status).toBe(201);
});

it('keys are kept once per job', async () => {
  const { keys } = await countPlaces(node.database.url);
  const names = new Set(['order-42', 'k', 'k/1', 'single', 'bulk', 'one', 'x', 'y']);
  expect(keys).toBe(names.size + 2);
});

it('a key has up to 512 characters, each of which may take four bytes', async () => {
  const tenant = 't'.repeat(128);
  // Different ones, because Postgres would compress the same.
  const key = Array.from({ length: 512 }, (_, i) =>
    String.fromCodePoint(0x10000 + ((i * 7_919) % 60_000)),
  ).join('');
  for (const [more, body] of Object.entries({ now: {}, later: { delay: '30d' } })) {
    const mine = more.slice(0, 1) + key.slice(2);
    const { id } = await node.submit({ task: 'work', key: mine, hold: true, ...body }, tenant);
    const found = await node.get<Page<Job>>('GET', `/v1/jobs?key=${encodeURIComponent(mine)}`, { tenant });
    expect(found.data).toMatchObject([{ id, key: mine }]);
  }
  expect(
    await node.ask('POST', '/v1/jobs', { body: { task: 'work', key: `${key}x` }, tenant }),
  ).toMatchObject({
    status: 422,
    body: { errors: [{ pointer: '/key' }] },
  });
});

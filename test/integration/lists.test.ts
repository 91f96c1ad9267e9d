import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ListedJob } from '../../src/core/job.js';
import { firstUuidAt } from '../../src/core/uuid.js';
import type { JobPage, ManyJobsAnswer } from '../../src/core/wire.js';
import { type ApiUser, TestNode, type TestTenant } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** One node for all; each test has a tenant of its own. */
let shared: TestNode;

beforeAll(async () => {
  shared = await TestNode.start({ settings: { workerTimeout: '2d' } });
});
afterAll(() => shared.stop());

type Query = Readonly<Record<string, string>>;

const page = (node: ApiUser, query: Query) =>
  node.get<JobPage>('GET', `/v1/jobs?${new URLSearchParams(query)}`);

/** All pages of a list. */
async function pages(node: ApiUser, query: Query): Promise<JobPage[]> {
  const read = [await page(node, query)];
  for (let { next } = read[0]!; next !== null; next = read.at(-1)!.next) {
    read.push(await page(node, { ...query, after: next }));
  }
  return read;
}

async function listed(node: ApiUser, query: Query): Promise<ListedJob[]> {
  return (await pages(node, query)).flatMap(({ data }) => data);
}

const idsOf = async (node: ApiUser, query: Query) => (await listed(node, query)).map(({ id }) => id);

const change = (node: ApiUser, verb: string, body: unknown) =>
  node.get<ManyJobsAnswer>('POST', `/v1/jobs/${verb}`, { body });

async function submitAll(node: ApiUser, jobs: readonly unknown[]): Promise<string[]> {
  return (await node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', { body: { jobs } })).ids;
}

const NO_RETRY = { retry: { maxAttempts: 1 } };

describe('jobs in every place', () => {
  let node: TestTenant;
  let worker: ProtocolWorker;
  const ids: Record<string, string> = {};

  beforeAll(async () => {
    node = shared.newTenant();
    worker = await ProtocolWorker.register(node, { slots: 100 });
    const payload = { customer: 7, tags: ['a', { deep: true }], none: null };
    const start = async (name: string, submission: object) => {
      ids[name] = (await node.submit({ task: 'work', payload, ...submission })).id;
      await worker.claimOne();
    };
    const report = (name: string, fence: number, outcome: object) =>
      worker.report({ jobId: ids[name]!, fence, outcome: 'succeeded', ...outcome } as never);
    const failed = { outcome: 'failed', error: { message: 'no', code: 'GONE' } };
    await start('succeeded', { key: 'order-1' });
    await report('succeeded', 1, {});
    await start('failed', { key: 'order-2', ...NO_RETRY });
    await report('failed', 1, failed);
    await start('twice', { retry: { maxAttempts: 2, backoff: { base: '1ms', jitter: 0 } } });
    await report('twice', 1, failed);
    await worker.claimOne();
    await report('twice', 2, failed);
    await start('running', { key: 'order%3' });
    ids.waiting = (await node.submit({ task: 'nobody', queue: 'slow', payload, key: 'other-1' })).id;
    ids.later = (await node.submit({ task: 'nobody', delay: '2h', payload, key: 'order-4' })).id;
    ids.held = (await node.submit({ task: 'nobody', hold: true, payload: { customer: '7' } })).id;
    ids.unparsed = await withClient(shared.database.url, async (client) => {
      const submission = { task: 'nobody', payload, key: 'order-5', delay: '3h' };
      const { rows } = await client.query('SELECT punctual.submit_job($1, $2::json) AS id', [
        node.tenant,
        JSON.stringify(submission),
      ]);
      return rows[0].id;
    });
  });

  it.each<[Query, string[]]>([
    [{}, ['succeeded', 'failed', 'twice', 'running', 'waiting', 'later', 'held', 'unparsed']],
    [{ state: 'failed' }, ['failed', 'twice']],
    [{ state: 'failed,running' }, ['failed', 'twice', 'running']],
    [{ state: 'pending,succeeded' }, ['succeeded', 'waiting', 'later', 'held', 'unparsed']],
    [{ state: 'blocked' }, []],
    [{ state: 'running' }, ['running']],
    [{ keyPrefix: 'order' }, ['succeeded', 'failed', 'running', 'later', 'unparsed']],
    [{ keyPrefix: 'order-' }, ['succeeded', 'failed', 'later', 'unparsed']],
    [{ keyPrefix: 'order%' }, ['running']],
    [{ keyPrefix: 'order-', state: 'failed' }, ['failed']],
    [{ keyPrefix: 'order-', key: 'order-2' }, ['failed']],
    [{ keyPrefix: 'x', key: 'order-2' }, []],
    [{ key: 'order-2', schedule: 'none' }, []],
    [{ minAttempts: '1' }, ['succeeded', 'failed', 'twice', 'running']],
    [{ minAttempts: '2' }, ['twice']],
    [{ maxAttempts: '0' }, ['waiting', 'later', 'held', 'unparsed']],
    [{ minAttempts: '1', maxAttempts: '1', state: 'failed' }, ['failed']],
    [{ errorCode: 'GONE' }, ['failed', 'twice']],
    [{ queue: 'slow' }, ['waiting']],
    [{ task: 'nobody', keyPrefix: 'o' }, ['waiting', 'later', 'unparsed']],
    [
      { 'payload.customer': '7' },
      ['succeeded', 'failed', 'twice', 'running', 'waiting', 'later', 'unparsed'],
    ],
    [{ 'payload[customer]': '7', state: 'failed' }, ['failed', 'twice']],
    [{ 'payload.customer': '"7"' }, ['held']],
    [{ 'payload.customer': '7.0', state: 'running' }, ['running']],
    [{ 'payload.customer': '70e-1', 'payload.tags.0': 'a', state: 'running' }, ['running']],
    [{ 'payload.customer': '7', 'payload.tags.0': 'b' }, []],
    [{ 'payload.tags.1.deep': 'true', state: 'succeeded' }, ['succeeded']],
    [{ 'payload.none': 'null', state: 'succeeded' }, ['succeeded']],
    [{ 'payload.missing': 'null' }, []],
    [{ 'payload.tags': 'a' }, []],
  ])('%j finds those that it fits, in pages of any size', async (query, names) => {
    const expected = names.map((name) => ids[name]).sort();
    expect((await idsOf(node, query)).sort()).toEqual(expected);
    const small = await idsOf(node, { ...query, limit: '2' });
    expect(small).toEqual([...small].sort().reverse());
    expect([...small].sort()).toEqual(expected);
  });

  it('a worker is found by what it runs and ran', async () => {
    const found = await idsOf(node, { worker: worker.id });
    expect(found.sort()).toEqual([ids.succeeded, ids.failed, ids.twice, ids.running].sort());
    expect(await idsOf(node, { worker: worker.id, state: 'running' })).toEqual([ids.running]);
    expect(await idsOf(node, { worker: worker.id, state: 'pending' })).toEqual([]);
  });

  it('changes of many jobs find the same ones', async () => {
    const count = async (verb: string, filter: object) =>
      (await change(node, verb, { filter, dryRun: true })).matched;
    expect(await count('cancel', { payload: { customer: 7 } })).toBe(4);
    expect(await count('cancel', { payload: { customer: '7' } })).toBe(1);
    expect(await count('cancel', { payload: { customer: 7, 'tags.1.deep': true }, state: 'pending' })).toBe(
      3,
    );
    expect(await count('delete', { keyPrefix: 'order-' })).toBe(2);
    expect(await count('delete', { state: 'failed,cancelled' })).toBe(2);
    expect(await count('redrive', { minAttempts: 2 })).toBe(1);
    expect(await count('hold', { keyPrefix: 'order', payload: { none: null } })).toBe(2);
    expect(await count('release', { payload: { customer: '7' } })).toBe(1);
    expect(await count('redrive', { worker: worker.id, maxAttempts: 1 })).toBe(1);
  });

  it.each([
    [{ 'payload.': '7' }, '/payload/'],
    [{ 'payload.a..b': '7' }, '/payload/a..b'],
    [{ payload: '7' }, '/payload'],
    [{ 'payload.a': '\0' }, '/payload/a'],
    [{ minAttempts: '-1' }, '/minAttempts'],
    [{ state: 'failed,lost' }, '/state'],
    [{ 'task.a': 'b' }, '/task.a'],
  ])('%j is refused with a pointer', async (query, pointer) => {
    const { status, body } = await node.ask<{ errors: { pointer: string }[] }>(
      'GET',
      `/v1/jobs?${new URLSearchParams(query)}`,
    );
    expect(status).toBe(422);
    expect(body.errors.map((error) => error.pointer)).toEqual([pointer]);
  });
});

it('payloads that Postgres cannot parse spoil no search, and are found by what can be read of them', async () => {
  const node = shared.newTenant();
  const odd = [
    '{"n":1,"text":"a\\u0000b\\ud800c"}',
    '{"n":1,"big":1e999999}',
    '{"n":1e999999}',
    `{"n":1,"digits":${'9'.repeat(5_000)}}`,
    '{"n":12345678901234567890}',
    '{"n":"\\u0031"}',
    '{"\\u006e":1,"a\\u0000":2}',
    '[{"n":1}]',
    '1',
    'null',
  ];
  for (const payload of odd) {
    await node.get('POST', '/v1/jobs', { body: `{"task":"nobody","payload":${payload}}` });
  }
  expect(await idsOf(node, { 'payload.n': '1' })).toHaveLength(4);
  expect(await idsOf(node, { 'payload.n': '1.0' })).toHaveLength(4);
  expect(await idsOf(node, { 'payload.n': '"1"' })).toHaveLength(1);
  expect(await idsOf(node, { 'payload.n': '1e999999' })).toHaveLength(1);
  expect(await idsOf(node, { 'payload.n': '12345678901234567890' })).toHaveLength(1);
  expect(await idsOf(node, { 'payload.n': '12345678901234567891' })).toHaveLength(0);
  expect(await idsOf(node, { 'payload.0.n': '1' })).toHaveLength(1);
  expect(await idsOf(node, { 'payload.text': '"a\\u0000b\\ud800c"' })).toHaveLength(1);
  const cancelled = await change(node, 'cancel', { filter: { payload: { n: 1 } } });
  expect(cancelled).toMatchObject({ matched: 4, changed: 4, next: null });
});

it('a character beyond the basic plane is found, written as itself or as two escapes', async () => {
  const node = shared.newTenant();
  const payloads = [
    '{"e":"😀"}',
    '{"e":"\\ud83d\\ude00"}',
    '{"x":"\\u0000","e":"\\uD83D\\uDE00"}',
    '{"e":"\\\\ud83d"}',
  ];
  for (const payload of payloads) {
    await node.get('POST', '/v1/jobs', { body: `{"task":"nobody","payload":${payload}}` });
  }
  expect(await idsOf(node, { 'payload.e': '😀' })).toHaveLength(3);
  expect(await idsOf(node, { 'payload.e': '\\ud83d' })).toHaveLength(1);
});

it('only the job that has a key is found by its prefix, whether by the index or by a scan', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node);
  const first = await node.submit({ task: 'work', key: 'daily-a' });
  await worker.claimOne();
  await worker.report({ jobId: first.id, fence: 1, outcome: 'succeeded' });
  const second = await node.submit({ task: 'work', key: 'daily-a', keyMode: 'reuse-when-ended' });
  expect(second.id).not.toBe(first.id);
  expect(await idsOf(node, { keyPrefix: 'daily' })).toEqual([second.id]);
  // More keys than are looked up by the index.
  const jobs = Array.from({ length: 2_100 }, (_, n) => ({ task: 'nobody', key: `daily-b${n}` }));
  const more = await submitAll(node, jobs);
  const found = await idsOf(node, { keyPrefix: 'daily', limit: '1000' });
  expect(found).toHaveLength(2_101);
  expect(new Set(found)).toEqual(new Set([second.id, ...more]));
  expect(await change(node, 'cancel', { filter: { keyPrefix: 'daily-b' }, dryRun: true })).toMatchObject({
    matched: 2_100,
  });
});

it('a filter that fits one job in tens of thousands ends a page at its bound, and goes on', async () => {
  const node = shared.newTenant();
  await withClient(shared.database.url, async (client) => {
    await client.query(
      `INSERT INTO punctual.queues (tenant, name, created_at) VALUES ($1, 'q', 0) ON CONFLICT DO NOTHING`,
      [node.tenant],
    );
    await client.query(
      `INSERT INTO punctual.job_history (id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once,
         timeout_ms, created_at, task, created_by, payload, attempts, failures, losses, state, finished_at)
       SELECT (left($2, 24) || lpad(to_hex(n), 12, '0'))::uuid, $1, q.id, 1, 5, 0, 1, 1, false, 1000, 0,
         CASE WHEN n = 100 THEN 'rare' ELSE 'common' END, 'test', json_build_object('n', n), 1, 0, 0, 'succeeded', $3
       FROM generate_series(1, 60000) n, punctual.queues q WHERE q.tenant = $1`,
      [node.tenant, firstUuidAt(Date.now()), Date.now()],
    );
  });
  const read = await pages(node, { task: 'rare' });
  expect(read.length).toBeGreaterThan(1);
  expect(read.flatMap(({ data }) => data)).toMatchObject([{ task: 'rare', payload: { n: 100 } }]);
  expect(read.reduce((sum, { scanned }) => sum + scanned, 0)).toBeGreaterThanOrEqual(60_000);
  for (const { data, next, scanned, complete } of read.slice(0, -1)) {
    expect({ data, complete }).toEqual({ data: [], complete: false });
    expect(next).not.toBeNull();
    expect(scanned).toBeLessThan(40_000);
  }
  expect(read.at(-1)).toMatchObject({ next: null, complete: true });
  expect(await page(node, { limit: '3' })).toMatchObject({ complete: true, data: [{}, {}, {}] });
  // A count ends after two seconds, and on a busy machine there are more to come then.
  let matched = 0;
  for (let after: string | undefined; ; ) {
    const counted = await change(node, 'delete', {
      ...{ filter: { payload: { n: 100 } }, dryRun: true },
      ...(after !== undefined && { after }),
    });
    matched += counted.matched;
    if (counted.next === null) break;
    after = counted.next;
  }
  expect(matched).toBe(1);
});

it('pages hold every job exactly once while jobs end and move to history', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { slots: 1_000 });
  const ids = await submitAll(
    node,
    Array.from({ length: 600 }, (_, n) => ({ task: 'work', payload: { n }, ...NO_RETRY })),
  );
  const endSome = async () => {
    const claimed = await worker.claim(10);
    await worker.report(
      ...claimed.map(({ jobId, fence }) => ({ jobId, fence, outcome: 'succeeded' as const })),
    );
  };
  const newest = [...ids].sort().reverse();
  // Some jobs end while each page is read, oldest first, so that they move below, on and above the page.
  const walk = async (query: Query) => {
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const asked: Query = after === null ? query : { ...query, after };
      const [read] = await Promise.all([page(node, asked), endSome()]);
      seen.push(...read.data.map(({ id }) => id));
      after = read.next;
    } while (after !== null);
    return seen;
  };
  expect(await walk({ limit: '30' })).toEqual(newest);
  expect(await walk({ limit: '45', task: 'work', maxAttempts: '9' })).toEqual(newest);
  const count = async (state: string) => (await idsOf(node, { state, limit: '1000' })).length;
  expect((await count('succeeded')) + (await count('pending'))).toBe(ids.length);
  expect(await count('succeeded')).toBeGreaterThan(200);
  expect(await count('pending')).toBeGreaterThan(100);
});

import { beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { BulkAnswer } from '../../../src/core/wire.js';
import { type Answer, nodeForTest, TestNode } from '../../node-for-tests.js';
import { countPlaces, lockWaits, withClient } from '../../postgres-client.js';
import { TestClock } from '../../test-clock.js';
import { until } from '../store/test-shard.js';

const HOUR_MS = 3_600_000;
const withKey = (key: string) => ({ 'idempotency-key': key });

describe('a submission with an Idempotency-Key', () => {
  let test: TestNode;
  beforeAll(async () => {
    test = await TestNode.start();
    return () => test.stop();
  });

  it('makes one job, and is answered again as it was the first time', async () => {
    const tenant = test.newTenant();
    const send = () =>
      tenant.ask<Job>('POST', '/v1/jobs', {
        body: { task: 'work', payload: { n: 1 } },
        headers: withKey('one'),
      });
    const first = await send();
    expect(first).toMatchObject({ status: 201, body: { state: 'pending', payload: { n: 1 } } });
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    await tenant.get('POST', `/v1/jobs/${first.body.id}/cancel`);
    const second = await send();
    expect([second.status, second.body]).toEqual([201, first.body]);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect(second.headers.get('location')).toBe(`/v1/jobs/${first.body.id}`);
    const { data } = await tenant.get<{ data: Job[] }>('GET', '/v1/jobs');
    expect(data.map(({ id }) => id)).toEqual([first.body.id]);
  });

  it('runs like any other job', async () => {
    const tenant = test.newTenant();
    const { body } = await tenant.ask<Job>('POST', '/v1/jobs', {
      body: { task: 'greet' },
      headers: withKey('run'),
    });
    const { task } = await import('../../../src/core/task.js');
    await tenant.work([task('greet', {}, async () => 'hello')]);
    expect(await tenant.ended(body.id)).toMatchObject({ state: 'succeeded', result: 'hello' });
  });

  it.each([
    ['another body', '/v1/jobs', { task: 'other' }],
    ['another route', '/v1/jobs/bulk', { jobs: [{ task: 'work' }] }],
  ])('is refused with %s', async (_, path, body) => {
    const tenant = test.newTenant();
    await tenant.get('POST', '/v1/jobs', { body: { task: 'work' }, headers: withKey('reused') });
    const answer = await tenant.ask('POST', path, { body, headers: withKey('reused') });
    expect(answer).toMatchObject({ status: 422, body: { code: 'IDEMPOTENCY_KEY_REUSED' } });
    const { data } = await tenant.get<{ data: Job[] }>('GET', '/v1/jobs');
    expect(data).toHaveLength(1);
  });

  it('does not meet the same key of another tenant', async () => {
    const [mine, other] = [test.newTenant(), test.newTenant()];
    const send = (tenant: typeof mine, task: string) =>
      tenant.ask<Job>('POST', '/v1/jobs', { body: { task }, headers: withKey('shared') });
    const first = await send(mine, 'work');
    const second = await send(other, 'other');
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.headers.get('idempotency-replayed')).toBeNull();
    expect(second.body).toMatchObject({ tenant: other.tenant, task: 'other' });
  });

  it.each([
    ['nothing', ''],
    ['too much', 'k'.repeat(256)],
    ['other than ASCII', 'caf\u00e9'],
    ['a control character', 'a\tb'],
  ])('is refused when the key is %s', async (_, key) => {
    const answer = await test.ask('POST', '/v1/jobs', { body: { task: 'work' }, headers: withKey(key) });
    expect(answer).toMatchObject({ status: 422, body: { code: 'INVALID_REQUEST' } });
    expect(answer.body).toMatchObject({ errors: [{ pointer: '/idempotency-key' }] });
  });

  it('leaves nothing behind when it is refused, so that it can be sent again corrected', async () => {
    const tenant = test.newTenant();
    const send = (body: unknown) => tenant.ask('POST', '/v1/jobs', { body, headers: withKey('corrected') });
    expect(await send({ task: 'work', priority: 99 })).toMatchObject({ status: 422 });
    expect(await send({ task: 'work', priority: 9 })).toMatchObject({ status: 201 });
  });

  it('is checked for its credential before anything is replayed', async () => {
    const send = (key?: string | null) =>
      test.ask('POST', '/v1/jobs', {
        body: { task: 'work' },
        headers: withKey('secret'),
        ...(key !== undefined && { key }),
      });
    expect((await send()).status).toBe(201);
    expect(await send(null)).toMatchObject({ status: 401, body: { code: 'UNAUTHENTICATED' } });
  });

  it('may carry a key of its job as well: both answers are replayed as they were', async () => {
    const tenant = test.newTenant();
    const send = (key: string) =>
      tenant.ask<Job>('POST', '/v1/jobs', { body: { task: 'work', key: 'order-1' }, headers: withKey(key) });
    const first = await send('a');
    const repeated = await send('b');
    expect([first.status, repeated.status]).toEqual([201, 200]);
    expect(repeated.body).toMatchObject({ id: first.body.id, repeated: true });
    expect((await send('a')).body).toEqual(first.body);
    const again = await send('b');
    expect([again.status, again.body]).toEqual([200, repeated.body]);
  });

  it('that replaces the waiting job of its key does so once', async () => {
    const tenant = test.newTenant();
    const send = (key: string, payload: number) =>
      tenant.ask<Job>('POST', '/v1/jobs', {
        body: { task: 'work', key: 'latest', keyMode: 'replace', payload, hold: true },
        headers: withKey(key),
      });
    await send('1', 1);
    const second = await send('2', 2);
    expect(second).toMatchObject({ status: 200, body: { replaced: true, payload: 2 } });
    await send('3', 3);
    expect((await send('2', 2)).body).toEqual(second.body);
    expect(await tenant.job(second.body.id)).toMatchObject({ payload: 3 });
  });

  it('is replayed without its payload when that is large', async () => {
    const tenant = test.newTenant();
    const payload = 'x'.repeat(100_000);
    const send = () =>
      tenant.ask<Job>('POST', '/v1/jobs', { body: { task: 'work', payload }, headers: withKey('large') });
    const first = await send();
    expect(first.body.payload).toBe(payload);
    const { payload: _, result: __, ...rest } = first.body;
    expect((await send()).body).toEqual({ ...rest, omitted: ['payload', 'result'] });
    expect(await tenant.job(first.body.id)).toMatchObject({ payload });
  });

  it('of a thousand jobs at once makes them once', async () => {
    const tenant = test.newTenant();
    const jobs = Array.from({ length: 1_000 }, (_, n) => ({
      task: 'work',
      payload: n,
      ...(n < 2 && { key: 'same' }),
    }));
    const send = () =>
      tenant.ask<BulkAnswer>('POST', '/v1/jobs/bulk', { body: { jobs }, headers: withKey('bulk') });
    const first = await send();
    expect(first.status).toBe(201);
    expect(first.body.repetitions).toMatchObject([{ index: 1, replaced: false }]);
    const second = await send();
    expect([second.status, second.body]).toEqual([201, first.body]);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    const { rows } = await withClient(test.database.url, (client) =>
      client.query(`SELECT count(*)::int AS n FROM punctual.jobs WHERE tenant = $1`, [tenant.tenant]),
    );
    expect(rows[0].n).toBe(999);
  });
});

it('answers are kept for the time that is set, and then removed', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock });
  const send = () =>
    node.ask<Job>('POST', '/v1/jobs', { body: { task: 'work', hold: true }, headers: withKey('day') });
  const first = await send();
  clock.advance(23 * HOUR_MS);
  expect((await send()).body).toEqual(first.body);
  clock.advance(HOUR_MS + 1);
  // Whether its row has been removed by now or not, it does not count any more.
  const later = await send();
  expect(later.headers.get('idempotency-replayed')).toBeNull();
  expect(later.body.id).not.toBe(first.body.id);
});

it('a hundred equal requests at once on two nodes make one job', async () => {
  const node = await nodeForTest();
  const other = await nodeForTest({ database: node.database });
  const send = (to: TestNode) =>
    to.ask<Job>('POST', '/v1/jobs', { body: { task: 'work', payload: 7 }, headers: withKey('crowd') });
  const answers: Answer<Job>[] = await Promise.all(
    Array.from({ length: 100 }, (_, n) => send(n % 2 === 0 ? node : other)),
  );
  const made = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(({ status }) => status !== 201);
  expect(made.length).toBeGreaterThan(0);
  expect(new Set(made.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(made.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1);
  for (const { status, body, headers } of refused) {
    expect([status, (body as { code?: string }).code]).toEqual([409, 'IDEMPOTENCY_IN_FLIGHT']);
    expect(headers.get('retry-after')).toBe('1');
  }
  expect(await countPlaces(node.database.url)).toMatchObject({ live: 1, later: 0, history: 0 });
});

it('while the first request is in flight on another node, an equal one is told so, and one on another node waits for its answer', async () => {
  const node = await nodeForTest();
  const other = await nodeForTest({ database: node.database });
  const send = (to: TestNode) =>
    to.ask<Job>('POST', '/v1/jobs', { body: { task: 'work', key: 'locked' }, headers: withKey('slow') });
  await withClient(node.database.url, async (client) => {
    // Another program holds up the insert of jobs: the first request has stored its answer by then, not committed it.
    await client.query('BEGIN');
    await client.query('LOCK TABLE punctual.later, punctual.jobs IN SHARE MODE');
    const first = send(node);
    const waits = async (n: number) => (await lockWaits(client)) >= n;
    await until(() => waits(1));
    expect(await send(node)).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_IN_FLIGHT' } });
    const second = send(other);
    await until(() => waits(2));
    await client.query('ROLLBACK');
    const [made, waited] = await Promise.all([first, second]);
    expect([made.status, waited.status]).toEqual([201, 201]);
    expect(waited.body).toEqual(made.body);
  });
  expect(await countPlaces(node.database.url)).toMatchObject({ live: 1 });
});

import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { task } from '../../src/core/task.js';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';

/**
 * One node for all; each test has a tenant of its own. They run side by side, because each of them waits for the
 * pass that admits once a second.
 */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const double = task('double', (n: number) => n * 2);

/** Runs something inside a transaction of its own and ends it as told. */
function inTransaction<T>(end: 'COMMIT' | 'ROLLBACK', work: (tx: pg.Client) => Promise<T>): Promise<T> {
  return withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    const value = await work(client);
    await client.query(end);
    return value;
  });
}

it.concurrent('a job submitted in a transaction runs when that commits, and not before', async () => {
  const tenant = 'commit';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const handle = await inTransaction('COMMIT', async (tx) => {
    const submitted = await punctual.submit(double, 21, { tx });
    expect(await node.ask('GET', `/v1/jobs/${submitted.id}`, { tenant })).toMatchObject({ status: 404 });
    return submitted;
  });
  expect(await handle.result()).toBe(42);
  expect(await handle.get()).toMatchObject({
    state: 'succeeded',
    payload: 21,
    attempt: 1,
    createdBy: expect.stringMatching(/^transaction:/),
  });
});

it.concurrent('a job submitted in a transaction that is rolled back never existed', async () => {
  const tenant = 'rollback';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const gone = await inTransaction('ROLLBACK', (tx) => punctual.submit(double, 1, { tx, key: 'k' }));
  const kept = await inTransaction('COMMIT', (tx) => punctual.submit(double, 2, { tx, key: 'k' }));
  expect(await kept.result()).toBe(4);
  expect(await node.ask('GET', `/v1/jobs/${gone.id}`, { tenant })).toMatchObject({ status: 404 });
  expect(await punctual.getByKey('k')).toMatchObject({ id: kept.id });
});

it.concurrent('an open transaction holds nobody up', async () => {
  const tenant = 'open';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  await inTransaction('ROLLBACK', async (tx) => {
    await punctual.submit(double, 1, { tx, key: 'shared' });
    const other = await punctual.submit(double, 2, { key: 'shared' });
    expect(await other.result()).toBe(4);
    const committed = await inTransaction('COMMIT', (tx2) => punctual.submit(double, 3, { tx: tx2 }));
    expect(await committed.result()).toBe(6);
  });
});

it.concurrent('a key that is taken makes the second job a skipped one that names the first', async () => {
  const tenant = 'key';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const first = await punctual.submit(double, 1, { key: 'order' });
  const second = await inTransaction('COMMIT', (tx) => punctual.submit(double, 2, { tx, key: 'order' }));
  await expect(second.result()).rejects.toMatchObject({
    job: { state: 'skipped', error: { code: 'DUPLICATE_KEY', message: expect.stringContaining(first.id) } },
  });
  expect(await punctual.getByKey('order')).toMatchObject({ id: first.id });
});

it.concurrent('two with the same key in one transaction are one job and one skipped', async () => {
  const tenant = 'twice';
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const handles = await inTransaction('COMMIT', async (tx) => [
    await punctual.submit(double, 1, { tx, key: 'same' }),
    await punctual.submit(double, 2, { tx, key: 'same' }),
  ]);
  const ended = await Promise.all(handles.map((handle) => node.ended(handle.id, tenant)));
  expect(ended.map((job) => job.state).sort()).toEqual(['skipped', 'succeeded']);
});

it.concurrent('what is wrong with a submission is told before it is sent', async () => {
  const punctual = node.connect('checked');
  await inTransaction('COMMIT', async (tx) => {
    await expect(punctual.submit(double, 1, { tx, priority: 12 })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      errors: [{ pointer: '/priority' }],
    });
  });
});

it.concurrent.each([
  ['an unknown field', '{"task": "double", "taks": 1}'],
  ['a bad priority', '{"task": "double", "priority": 77}'],
  ['a timeout beyond the maximum', '{"task": "double", "timeout": "5h"}'],
  ['nothing to run', '{}'],
  ['a queue that is no name', '{"task": "double", "queue": "a b"}'],
  ['a key that is no text', '{"task": "double", "key": {"a": 1}}'],
  ['a lone surrogate as its name', '{"task": "\\ud800"}'],
  ['NUL as its name', '{"task": "a\\u0000b", "payload": 1}'],
])('a submission by SQL with %s is a failed job, and others go on', async (what, submission) => {
  const tenant = `sql-${what.replace(/\W/g, '-')}`;
  const [bad, good] = await withClient(node.database.url, async (client) => {
    const submit = async (json: string) =>
      (await client.query('SELECT punctual.submit_job($1, $2) AS id', [tenant, json])).rows[0].id as string;
    return [await submit(submission), await submit('{"task": "double", "hold": true}')];
  });
  expect(await node.ended(bad!, tenant)).toMatchObject({
    state: 'failed',
    error: { code: 'INVALID_REQUEST' },
    attempts: [],
  });
  expect(await node.job(good!, tenant)).toMatchObject({ state: 'pending', task: 'double' });
});

it.concurrent.each([
  ['on hold', { hold: true }],
  ['due in the far future', { delay: '1h' }],
  ['on hold and due in the far future', { hold: true, delay: '1h' }],
])('a job that is %s can be submitted in a transaction and steered afterwards', async (what, options) => {
  const tenant = what.replaceAll(' ', '-');
  await node.work([double], { tenant });
  const punctual = node.connect(tenant);
  const { id } = await inTransaction('COMMIT', (tx) => punctual.submit(double, 5, { tx, ...options }));
  // JobControl does not have to wait for the admission.
  const steer = (verb: string, body?: unknown) =>
    node.get(verb === 'PATCH' ? 'PATCH' : 'POST', `/v1/jobs/${id}${verb === 'PATCH' ? '' : `/${verb}`}`, {
      tenant,
      ...(body !== undefined && { body }),
    });
  expect(await steer('PATCH', { priority: 8, runAt: '2020-01-01T00:00:00Z' })).toMatchObject({ priority: 8 });
  if ('hold' in options) await steer('release');
  expect(await node.ended(id, tenant)).toMatchObject({ state: 'succeeded', result: 10 });
});

it.concurrent('a job submitted in a transaction can be cancelled at once', async () => {
  const tenant = 'cancel';
  const punctual = node.connect(tenant);
  const { id } = await inTransaction('COMMIT', (tx) => punctual.submit(double, 5, { tx }));
  expect(await punctual.cancel(id)).toMatchObject({ state: 'cancelled' });
});

import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import { task } from '../../../src/core/task.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { TestClock } from '../../test-clock.js';
import { ScheduleTester, SECOND } from '../schedules/schedule-tester.js';
import { until } from '../store/test-shard.js';

const define = (node: TestNode, body: Record<string, unknown>, tenant?: string) =>
  node.get('POST', '/v1/tasks', { body, ...(tenant !== undefined && { tenant }) });

/** The statements about tasks that this process sends. */
function countStatements(): Map<string, number> {
  const counts = new Map<string, number>();
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const name = (args[0] as { name?: string }).name ?? '';
    if (name.includes('task')) counts.set(name, (counts.get(name) ?? 0) + 1);
    return query.apply(this, args);
  } as never);
  onTestFinished(() => spy.mockRestore());
  return counts;
}

describe('a job that is submitted by the name of a defined task', () => {
  it('takes what the task says, over HTTP alone and in bulk, and runs', async () => {
    const node = await nodeForTest();
    const hello = task('hello', (input: { name: string }) => `Hello ${input.name}`);
    await node.work([hello], { queues: ['*'] });
    await define(node, {
      ...{
        name: 'greet',
        target: { type: 'handler', name: 'hello' },
        queue: 'mail',
        priority: 7,
        timeout: '30s',
      },
      ...{ retry: { maxAttempts: 6 }, concurrencyKey: { path: 'name' } },
    });
    const job = await node.submit({ task: 'greet', payload: { name: 'Ada' } });
    const taken = {
      ...{ task: 'greet', target: { type: 'handler', name: 'hello' }, queue: 'mail', priority: 7 },
      ...{ timeout: '30s', maxAttempts: 6, concurrencyKey: 'Ada' },
    };
    expect(job).toMatchObject(taken);
    expect(await node.ended(job.id)).toMatchObject({ ...taken, state: 'succeeded', result: 'Hello Ada' });
    const jobs = [
      { task: 'greet', payload: { name: 'Ada' } },
      { task: 'greet', queue: 'own', payload: { name: 'Eve' } },
      { task: 'hello', payload: { name: 'x' } },
    ];
    const { ids } = await node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', { body: { jobs } });
    const stored = await Promise.all(ids.map((id) => node.job(id)));
    expect(
      stored.map(({ queue, concurrencyKey, maxAttempts }) => [queue, concurrencyKey, maxAttempts]),
    ).toEqual([
      ['mail', 'Ada', 6],
      ['own', 'Eve', 6],
      ['default', null, 4],
    ]);
  });

  it('is checked against the schema of the task, and nothing is stored that does not fit', async () => {
    const node = await nodeForTest();
    await define(node, {
      name: 'greet',
      payloadSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    });
    expect(
      await node.ask('POST', '/v1/jobs', { body: { task: 'greet', payload: { name: 1 } } }),
    ).toMatchObject({
      status: 422,
      body: { code: 'INVALID_REQUEST', errors: [{ pointer: '/payload/name', detail: 'must be text' }] },
    });
    const jobs = [
      { task: 'greet', payload: { name: 'Ada' } },
      { task: 'greet', payload: {} },
    ];
    expect(await node.ask('POST', '/v1/jobs/bulk', { body: { jobs } })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '/jobs/1/payload/name' }] },
    });
    expect(await node.get('GET', '/v1/jobs')).toMatchObject({ data: [] });
    await node.submit({ task: 'greet', payload: { name: 'Ada' } });
  });

  it('keeps what it took when the task is changed or deleted', async () => {
    const node = await nodeForTest();
    await define(node, { name: 'greet', queue: 'first' });
    const first = await node.submit({ task: 'greet' });
    await node.get('PATCH', '/v1/tasks/greet', { body: { queue: 'second' } });
    const second = await node.submit({ task: 'greet' });
    await node.get('DELETE', '/v1/tasks/greet');
    const third = await node.submit({ task: 'greet' });
    const queues = await Promise.all(
      [first, second, third].map(async ({ id }) => (await node.job(id)).queue),
    );
    expect(queues).toEqual(['first', 'second', 'default']);
  });

  it('is changed only to a payload that fits the schema', async () => {
    const node = await nodeForTest();
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    await define(node, { name: 'greet', payloadSchema: schema });
    const { id } = await node.submit({ task: 'greet', hold: true, payload: { name: 'Ada' } });
    const change = (payload: unknown) => node.ask('PATCH', `/v1/jobs/${id}`, { body: { payload } });
    expect(await change({ name: 1 })).toMatchObject({
      status: 422,
      body: { code: 'INVALID_REQUEST', errors: [{ pointer: '/payload/name', detail: 'must be text' }] },
    });
    expect((await change('no object')).status).toBe(422);
    expect(await change({ name: 'Eve' })).toMatchObject({ status: 200, body: { payload: { name: 'Eve' } } });
  });

  it('keeps the digits of its payload', async () => {
    const node = await nodeForTest();
    await define(node, {
      name: 'exact',
      concurrencyKey: { path: 'id' },
      payloadSchema: { required: ['id'] },
    });
    const text = '{"task":"exact","payload":{"id":"a","n":12345678901234567890.12345678901234567890}}';
    const { body } = await node.ask('POST', '/v1/jobs', { body: text });
    const answer = await fetch(`${node.url}/v1/jobs/${body.id}`, {
      headers: { authorization: `Bearer ${node.apiKey}` },
    });
    expect(await answer.text()).toContain('12345678901234567890.12345678901234567890');
  });
});

describe('definitions are looked up', () => {
  it('once for each task of a bulk, and not again for the next one', async () => {
    const node = await nodeForTest({ clock: new TestClock() });
    await define(node, { name: 'a', queue: 'qa' });
    const counts = countStatements();
    const jobs = Array.from({ length: 10_000 }, (_, i) => ({ task: ['a', 'b', 'c'][i % 3], payload: i }));
    await node.get('POST', '/v1/jobs/bulk', { body: { jobs } });
    expect(counts.get('read-tasks')).toBe(1);
    await node.get('POST', '/v1/jobs/bulk', { body: { jobs: jobs.slice(0, 10) } });
    expect(counts.get('read-tasks')).toBe(1);
    expect(counts.get('read-task-changes') ?? 0).toBeLessThanOrEqual(1);
  });

  it('not at all for tenants without any: one look in a second serves them all', async () => {
    const clock = new TestClock();
    const node = await nodeForTest({ clock });
    await define(node, { name: 'a', queue: 'qa' }, 'other');
    await node.submit({ task: 'x' });
    const counts = countStatements();
    for (let i = 0; i < 20; i++) await node.submit({ task: `x${i}` });
    expect(Object.fromEntries(counts)).toEqual({});
    clock.advance(1_000);
    for (let i = 0; i < 20; i++) await node.submit({ task: `x${i}` });
    expect(Object.fromEntries(counts)).toEqual({ 'read-task-changes': 1 });
  });

  it('by many at once with one statement', async () => {
    const node = await nodeForTest({ clock: new TestClock() });
    await define(node, { name: 'a', queue: 'qa' });
    const counts = countStatements();
    const jobs = await Promise.all(Array.from({ length: 50 }, () => node.submit({ task: 'a' })));
    expect(jobs.every(({ queue }) => queue === 'qa')).toBe(true);
    expect(counts.get('read-tasks')).toBe(1);
  });
});

describe('a change', () => {
  it('holds at once on the node that made it, and within a second on the others', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const clock = new TestClock();
    const [one, other] = [await nodeForTest({ database, clock }), await nodeForTest({ database, clock })];
    const queues = async () => [
      (await one.submit({ task: 'greet' })).queue,
      (await other.submit({ task: 'greet' })).queue,
    ];
    expect(await queues()).toEqual(['default', 'default']);
    await define(one, { name: 'greet', queue: 'first' });
    expect(await queues()).toEqual(['first', 'default']);
    clock.advance(1_000);
    expect(await queues()).toEqual(['first', 'first']);
    await other.get('PATCH', '/v1/tasks/greet', { body: { queue: 'second' } });
    expect((await other.submit({ task: 'greet' })).queue).toBe('second');
    clock.advance(1_000);
    expect(await queues()).toEqual(['second', 'second']);
    await one.get('DELETE', '/v1/tasks/greet');
    expect((await one.submit({ task: 'greet' })).queue).toBe('default');
    clock.advance(1_000);
    expect(await queues()).toEqual(['default', 'default']);
  });

  it('is seen by the true clock within about a second, with submissions all the time', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const [one, other] = [await nodeForTest({ database }), await nodeForTest({ database })];
    await other.submit({ task: 'greet' });
    await define(one, { name: 'greet', queue: 'mail' });
    const began = performance.now();
    await until(async () => (await other.submit({ task: 'greet' })).queue === 'mail');
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('of a restored database is believed, though its numbers are lower', async () => {
    const clock = new TestClock();
    const node = await nodeForTest({ clock });
    for (const queue of ['a', 'b', 'c']) await define(node, { name: 'greet', queue });
    clock.advance(1_000);
    expect((await node.submit({ task: 'greet' })).queue).toBe('c');
    await withClient(node.database.url, async (client) => {
      await client.query('UPDATE punctual.task_changes SET version = 1');
      await client.query('UPDATE punctual.task_tenants SET version = 1');
      await client.query(`UPDATE punctual.tasks SET definition = '{"queue":"restored"}'`);
    });
    clock.advance(1_000);
    expect((await node.submit({ task: 'greet' })).queue).toBe('restored');
  });
});

describe('a submission in a transaction of its caller', () => {
  const submit = (node: TestNode, submission: unknown) =>
    withClient(node.database.url, async (client) => {
      const { rows } = await client.query(`SELECT punctual.submit_job('default', $1) AS id`, [
        JSON.stringify(submission),
      ]);
      return rows[0].id as string;
    });
  it('takes the definition when it is admitted', async () => {
    const node = await nodeForTest();
    await define(node, {
      name: 'greet',
      queue: 'mail',
      retry: { maxAttempts: 6 },
      concurrencyKey: { path: 'id' },
    });
    const id = await submit(node, { task: 'greet', priority: 2, payload: { id: 'c' } });
    // Before it is admitted, nothing is known of what it says.
    await until(async () => (await node.job(id)).priority === 2);
    const job = await node.job(id);
    expect(job).toMatchObject({ queue: 'mail', maxAttempts: 6, priority: 2, concurrencyKey: 'c' });
  });

  it('that does not fit its task fails, and says why', async () => {
    const node = await nodeForTest();
    await define(node, { name: 'greet', payloadSchema: { type: 'object' }, retry: { maxAttempts: 3 } });
    const id = await submit(node, { task: 'greet', payload: 7 });
    expect(await node.ended(id)).toMatchObject({
      state: 'failed',
      error: { code: 'INVALID_REQUEST', message: expect.stringContaining('/payload: must be an object') },
    });
    const other = await submit(node, { task: 'greet', payload: {}, delivery: 'at-most-once' });
    expect(await node.ended(other)).toMatchObject({
      state: 'failed',
      error: { message: expect.stringContaining('(3 comes from the task greet)') },
    });
  });
});

describe('a schedule', () => {
  it('takes what its task says when it fires', async () => {
    const tester = await ScheduleTester.start();
    const { node, clock } = tester;
    await define(node, {
      name: 'work',
      queue: 'first',
      retry: { maxAttempts: 6 },
      concurrencyKey: { path: 'id' },
    });
    await tester.create({ every: '60s', payload: { id: 'c' }, priority: 8 });
    expect(await tester.schedule()).toMatchObject({ queue: 'first', priority: 8 });
    clock.advance(60 * SECOND);
    await until(async () => (await tester.jobs()).length === 1);
    await node.get('PATCH', '/v1/tasks/work', { body: { queue: 'second', concurrencyKey: null } });
    clock.advance(60 * SECOND);
    await until(async () => (await tester.jobs()).length === 2);
    const byHand = await node.get<Job>('POST', '/v1/schedules/tick/run');
    expect(byHand).toMatchObject({ queue: 'second', maxAttempts: 6 });
    const jobs = await tester.jobs();
    expect(jobs.slice(0, 2)).toMatchObject([
      { queue: 'first', maxAttempts: 6, concurrencyKey: 'c', priority: 8, payload: { id: 'c' } },
      { queue: 'second', maxAttempts: 6, concurrencyKey: null, priority: 8, payload: { id: 'c' } },
    ]);
  });

  it('that does not fit its task is refused, and waits if the task comes not to fit it', async () => {
    const errors: string[] = [];
    vi.spyOn(console, 'error').mockImplementation((message) => void errors.push(String(message)));
    onTestFinished(() => void vi.restoreAllMocks());
    const tester = await ScheduleTester.start();
    const { node, clock } = tester;
    await define(node, { name: 'work', payloadSchema: { type: 'object', required: ['id'] } });
    const body = { name: 'other', task: 'work', every: '60s', payload: {} };
    expect(await node.ask('POST', '/v1/schedules', { body })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '/payload/id' }] },
    });
    await tester.create({ every: '60s', payload: { id: 1 } });
    await node.get('PATCH', '/v1/tasks/work', { body: { payloadSchema: { required: ['name'] } } });
    clock.advance(60 * SECOND);
    await until(() => errors.includes('the schedule cannot be fired'));
    expect(await tester.jobs()).toEqual([]);
    expect(await node.ask('POST', '/v1/schedules/tick/run')).toMatchObject({ status: 422 });
    await node.get('DELETE', '/v1/tasks/work');
    clock.advance(60 * SECOND);
    await until(async () => (await tester.jobs()).length > 0);
  });
});

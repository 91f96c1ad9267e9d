import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Page, TaskView } from '../../../src/core/wire.js';
import { nodeForTest, TestNode } from '../../node-for-tests.js';

/** One node for all; each test has a tenant of its own. */
let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

describe('a task', () => {
  it('is defined, read, changed and deleted', async () => {
    const tenant = node.newTenant();
    const definition = {
      description: 'Sends a mail.',
      queue: 'mail',
      retry: { maxAttempts: 6, backoff: { base: '1s' } },
      concurrencyKey: { path: 'to' },
      payloadSchema: { type: 'object', required: ['to'] },
    };
    const made = await tenant.ask<TaskView>('POST', '/v1/tasks', {
      body: { name: 'send-mail', ...definition },
    });
    expect(made).toMatchObject({
      status: 201,
      body: { ...definition, name: 'send-mail', tenant: tenant.tenant, version: 1, publishedBy: null },
    });
    expect(made.headers.get('location')).toBe('/v1/tasks/send-mail');
    expect(made.body).toMatchObject({
      createdBy: 'tester',
      changedBy: 'tester',
      changedAt: made.body.createdAt,
    });
    expect(await tenant.get('GET', '/v1/tasks/send-mail')).toEqual(made.body);

    const body = { queue: 'post', retry: null, timeout: '30s' };
    const changed = await tenant.get<TaskView>('PATCH', '/v1/tasks/send-mail', { body });
    expect(changed).toMatchObject({
      queue: 'post',
      timeout: '30s',
      version: 2,
      createdAt: made.body.createdAt,
    });
    expect(changed.retry).toBeUndefined();
    expect(changed.description).toBe('Sends a mail.');

    const replaced = await tenant.ask('POST', '/v1/tasks', { body: { name: 'send-mail', priority: 9 } });
    expect(replaced).toMatchObject({ status: 200, body: { priority: 9, version: 3 } });
    expect(replaced.body).not.toHaveProperty('queue');

    expect((await tenant.ask('DELETE', '/v1/tasks/send-mail')).status).toBe(204);
    for (const method of ['GET', 'DELETE'])
      expect(await tenant.ask(method, '/v1/tasks/send-mail')).toMatchObject({
        status: 404,
        body: { code: 'TASK_NOT_FOUND' },
      });
    expect(await tenant.ask('PATCH', '/v1/tasks/send-mail', { body: { priority: 1 } })).toMatchObject({
      status: 404,
    });
  });

  it('that is defined as it is stays as it is', async () => {
    const tenant = node.newTenant();
    const body = { name: 'same', queue: 'a', priority: 3 };
    const first = await tenant.get<TaskView>('POST', '/v1/tasks', { body });
    expect(
      await tenant.get('POST', '/v1/tasks', { body: { priority: 3, queue: 'a', name: 'same' } }),
    ).toEqual(first);
    expect(await tenant.get('PATCH', '/v1/tasks/same', { body: { queue: 'a' } })).toEqual(first);
  });

  it('belongs to its tenant', async () => {
    const [mine, other] = [node.newTenant(), node.newTenant()];
    await mine.get('POST', '/v1/tasks', { body: { name: 'greet', queue: 'mine' } });
    expect((await other.ask('GET', '/v1/tasks/greet')).status).toBe(404);
    expect((await other.ask('DELETE', '/v1/tasks/greet')).status).toBe(404);
    expect((await other.submit({ task: 'greet' })).queue).toBe('default');
    expect((await mine.submit({ task: 'greet' })).queue).toBe('mine');
  });

  it.each<[unknown, number, string]>([
    [{ queue: 'mail' }, 422, '/name'],
    [{ name: 'a b' }, 422, '/name'],
    [{ name: 'x', runAt: '2026-01-01T00:00:00Z' }, 422, '/runAt'],
    [{ name: 'x', delivery: 'at-most-once', retry: { maxAttempts: 3 } }, 422, '/retry/maxAttempts'],
    [{ name: 'x', payloadSchema: { pattern: '(a+)+$' } }, 422, '/payloadSchema/pattern'],
    [{ name: 'x', target: { type: 'exec', command: 'true' } }, 422, '/target/command'],
  ])('that is wrong is refused: %j', async (body, status, pointer) => {
    expect(await node.ask('POST', '/v1/tasks', { body })).toMatchObject({
      status,
      body: { errors: [{ pointer }] },
    });
  });

  it('that is too large is refused, also when a change makes it so', async () => {
    const tenant = node.newTenant();
    const large = (bytes: number) => ({ enum: ['x'.repeat(bytes)] });
    const body = { name: 'large', payloadSchema: large(80_000) };
    expect(await tenant.ask('POST', '/v1/tasks', { body })).toMatchObject({ status: 413 });
    await tenant.get('POST', '/v1/tasks', { body: { name: 'large', payloadSchema: large(65_000) } });
    const change = { description: 'x'.repeat(1_000) };
    expect(await tenant.ask('PATCH', '/v1/tasks/large', { body: change })).toMatchObject({ status: 422 });
  });

  it('is one of a bounded number', async () => {
    const small = await nodeForTest({ settings: { maxTasks: 2 } });
    for (const name of ['a', 'b']) await small.get('POST', '/v1/tasks', { body: { name } });
    const third = { body: { name: 'c' } };
    expect(await small.ask('POST', '/v1/tasks', third)).toMatchObject({
      status: 429,
      body: { code: 'QUOTA_EXCEEDED' },
    });
    await small.get('POST', '/v1/tasks', { body: { name: 'a', priority: 9 } });
    await small.get('DELETE', '/v1/tasks/b');
    expect((await small.ask('POST', '/v1/tasks', third)).status).toBe(201);
    expect((await small.ask('POST', '/v1/tasks', { ...third, tenant: 'other' })).status).toBe(201);
  });
});

it('the definitions of a tenant are bounded in bytes together', async () => {
  const tenant = node.newTenant();
  const schema = { enum: ['x'.repeat(65_000)] };
  const define = (name: string) => tenant.ask('POST', '/v1/tasks', { body: { name, payloadSchema: schema } });
  let defined = 0;
  for (; (await define(`t${defined}`)).status === 201; ) defined += 1;
  expect(defined).toBe(Math.floor((8 * 1024 * 1024) / JSON.stringify({ payloadSchema: schema }).length));
  expect(await define('more')).toMatchObject({ status: 429, body: { code: 'QUOTA_EXCEEDED' } });
  // What makes it smaller is taken, and makes room.
  await tenant.get('PATCH', '/v1/tasks/t0', { body: { payloadSchema: null } });
  expect((await define('more')).status).toBe(201);
  const page = await tenant.get<Page<TaskView>>('GET', '/v1/tasks?limit=1000');
  expect(page.data.length).toBeLessThan(30);
  const jobs = Array.from({ length: defined }, (_, i) => ({ task: `t${i}`, payload: schema.enum[0] }));
  const { ids } = await tenant.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
    body: { jobs: jobs.slice(0, 100) },
  });
  expect(ids).toHaveLength(100);
});

it('tasks are listed by name, in pages', async () => {
  const tenant = node.newTenant();
  const names = ['a', 'b', 'c', 'd', 'e'];
  await Promise.all(names.map((name) => tenant.get('POST', '/v1/tasks', { body: { name } })));
  const seen: string[] = [];
  for (let after = ''; ; ) {
    const query = after === '' ? '' : `&after=${after}`;
    const page = await tenant.get<Page<TaskView>>('GET', `/v1/tasks?limit=2${query}`);
    seen.push(...page.data.map(({ name }) => name));
    if (page.next === null) break;
    after = page.next;
  }
  expect(seen).toEqual(names);
});

it('many definitions at once count exactly', async () => {
  const small = await nodeForTest({ settings: { maxTasks: 10 } });
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      small.ask('POST', '/v1/tasks', { body: { name: `t${i % 20}`, priority: (i % 9) + 1 } }),
    ),
  );
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(10);
  expect((await small.get<Page<TaskView>>('GET', '/v1/tasks')).data).toHaveLength(10);
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NewKeyView } from '../../../src/core/access.js';
import type { AuditView } from '../../../src/core/audit.js';
import { task } from '../../../src/core/task.js';
import type { Page } from '../../../src/core/wire.js';
import type { ListedWorkflow, StoredWorkflowDefinition, Workflow } from '../../../src/core/workflow.js';
import {
  BEFORE_ALL_VERSIONS,
  deleteDefinition,
  forgetVersions,
  listVersions,
  putDefinition,
} from '../../../src/store/workflow-definitions.js';
import { type ApiUser, TestNode, type TestTenant } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { TestShard, until } from '../store/test-shard.js';
import { workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start({ settings: { maxPayload: 65_536, maxBulkBytes: 262_144 } });
});
afterAll(() => node.stop());

const PATH = '/v1/workflow-definitions/publish';

async function echoing(): Promise<TestTenant> {
  const user = node.newTenant();
  await user.work([task('echo', {}, async (input: unknown) => input)], { slots: 20 });
  return user;
}

const PUBLISH = {
  jobs: {
    render: { task: 'echo', payload: { page: { $from: 'input.page' }, all: { $from: 'input' } } },
    upload: {
      task: 'echo',
      after: ['render'],
      payload: { html: { $from: 'render.result.page' }, to: { $from: 'input.to.0' } },
    },
  },
};

const define = (user: ApiUser, body: unknown = PUBLISH, path = PATH) =>
  user.get<StoredWorkflowDefinition>('PUT', path, { body });
const start = (user: ApiUser, body: object = {}) =>
  user.ask<Workflow & { errors: unknown[] }>('POST', '/v1/workflows', {
    body: { definition: 'publish', ...body },
  });

describe('a definition', () => {
  it('is checked like a submission when it is put', async () => {
    const user = node.newTenant();
    const put = (jobs: object) => user.ask('PUT', PATH, { body: { jobs } });
    const wrong = [
      [{}, '/jobs'],
      [{ a: { task: 'echo', after: ['b'] }, b: { task: 'echo', after: ['a'] } }, '/jobs/a/after/0'],
      [{ a: { task: 'echo', after: ['x'] } }, '/jobs/a/after/0'],
      [{ a: { task: 'echo', retry: { maxAttempts: 0 } } }, '/jobs/a/retry/maxAttempts'],
      [{ a: { task: 'echo', payload: { $from: 'inputs.x' } } }, '/jobs/a/payload/$from'],
      [{ input: { task: 'echo' } }, '/jobs/input'],
    ] as const;
    for (const [jobs, pointer] of wrong) {
      const { status, body } = await put(jobs);
      expect([status, body]).toMatchObject([422, { errors: [{ pointer }] }]);
    }
    expect((await user.ask('GET', PATH)).status).toBe(404);
  });

  it('keeps its versions apart, and the same again is no new one', async () => {
    const user = node.newTenant();
    const first = await user.ask<StoredWorkflowDefinition>('PUT', PATH, { body: PUBLISH });
    expect(first).toMatchObject({ status: 201, body: { version: 1, newest: true, versions: [1], steps: 2 } });
    expect(first.headers.get('location')).toBe(PATH);
    expect(await user.ask('PUT', PATH, { body: PUBLISH })).toMatchObject({
      status: 200,
      body: { version: 1 },
    });
    expect(await define(user, { ...PUBLISH, onFailure: 'stop' })).toMatchObject({
      version: 2,
      versions: [2, 1],
    });
    expect(await user.get('GET', PATH)).toMatchObject({ version: 2, onFailure: 'stop', jobs: PUBLISH.jobs });
    expect(await user.get('GET', `${PATH}?version=1`)).toMatchObject({
      newest: false,
      onFailure: 'continue',
    });
    expect((await user.ask('GET', `${PATH}?version=3`)).status).toBe(404);
    // Back to the first: a new version, because starts take the newest.
    expect(await define(user)).toMatchObject({ version: 3 });
  });

  it('is the same for many who put it at the same moment', async () => {
    const user = node.newTenant();
    const all = await Promise.all(Array.from({ length: 8 }, () => define(user)));
    expect(all.map(({ version }) => version)).toEqual(Array(8).fill(1));
    const each = await Promise.all(
      Array.from({ length: 5 }, (_, i) => define(user, { jobs: { a: { task: `t${i}` } } })),
    );
    expect(each.map(({ version }) => version).sort()).toEqual([2, 3, 4, 5, 6]);
  });

  it('keeps payloads to the letter', async () => {
    const user = await echoing();
    const payload = '{"big":12345678901234567890.10,"text":"\\u0000"}';
    await define(user, `{"jobs":{"a":{"payload":${payload},"task":"echo"}}}` as never);
    const { body } = await start(user);
    await workflowEnd(user, body);
    const text = await fetch(`${node.url}/v1/jobs/${body.jobs.a!.id}`, {
      headers: { authorization: `Bearer ${node.apiKey}`, 'punctual-tenant': user.tenant },
    }).then((answer) => answer.text());
    expect(text).toContain(payload);
  });

  it('is listed by name, and is gone for starts once it is deleted', async () => {
    const user = await echoing();
    await define(user);
    await define(user, PUBLISH, '/v1/workflow-definitions/another');
    const page = await user.get<Page<StoredWorkflowDefinition>>('GET', '/v1/workflow-definitions?limit=1');
    expect(page).toMatchObject({ data: [{ name: 'another', version: 1 }], next: 'another' });
    const second = await user.get<Page<StoredWorkflowDefinition>>(
      'GET',
      '/v1/workflow-definitions?after=another',
    );
    expect(second.data.map(({ name }) => name)).toEqual(['publish']);
    const run = (await start(user, { input: { page: 1, to: ['x'] } })).body;
    expect((await user.ask('DELETE', PATH)).status).toBe(204);
    expect((await user.ask('DELETE', PATH)).status).toBe(404);
    expect(await start(user, { input: {} })).toMatchObject({
      status: 404,
      body: { code: 'DEFINITION_NOT_FOUND' },
    });
    // Nor by the number of a version that is still on record.
    expect(await start(user, { version: 1, input: { page: 1, to: ['x'] } })).toMatchObject({
      status: 404,
      body: { code: 'DEFINITION_NOT_FOUND' },
    });
    // What runs goes on, and its version can still be read.
    expect((await workflowEnd(user, run)).state).toBe('succeeded');
    expect(await user.get('GET', `${PATH}?version=1`)).toMatchObject({ newest: false });
    // A new definition of the name takes the next number: the run of the old one must not seem to be one of it.
    expect(await define(user)).toMatchObject({ version: 2 });
  });

  it('is on record in the audit, without what its payloads say', async () => {
    const user = node.newTenant();
    await define(user, { jobs: { a: { task: 'x', payload: { secret: 'abracadabra' } } } });
    await define(user, { jobs: { a: { task: 'y' } } });
    await user.get('DELETE', PATH);
    const { data } = await user.get<Page<AuditView>>('GET', '/v1/audit');
    const entries = data.filter(({ kind }) => kind === 'definition');
    expect(entries.map(({ action }) => action)).toEqual([
      'definition.delete',
      'definition.change',
      'definition.create',
    ]);
    expect(JSON.stringify(entries)).not.toContain('abracadabra');
  });
});

describe('a start by name', () => {
  it('runs the newest version, or the one that it names, and says which', async () => {
    const user = await echoing();
    await define(user);
    await define(user, { jobs: { only: { task: 'echo', payload: { $from: 'input' } } } });
    const newest = await start(user, { input: 42 });
    expect(newest).toMatchObject({
      status: 201,
      body: { name: 'publish', definition: { name: 'publish', version: 2 } },
    });
    expect((await user.ended(newest.body.jobs.only!.id)).result).toBe(42);
    const old = await start(user, { version: 1, input: { page: 'p', to: ['x', 'y'] } });
    const ended = await workflowEnd(user, old.body);
    expect(ended).toMatchObject({ state: 'succeeded', definition: { name: 'publish', version: 1 } });
    const upload = await user.job(old.body.jobs.upload!.id);
    expect(upload.result).toEqual({ html: 'p', to: 'x' });
    const list = await user.get<Page<ListedWorkflow>>('GET', '/v1/workflows?definition=publish');
    expect(list.data.map(({ definition }) => definition?.version)).toEqual([1, 2]);
    expect((await start(user, { version: 7 })).status).toBe(404);
  });

  it('takes a key and an Idempotency-Key like a submission', async () => {
    const user = await echoing();
    await define(user);
    const body = { definition: 'publish', key: 'k', input: { page: 1, to: [2] } };
    const first = await user.ask<Workflow>('POST', '/v1/workflows', { body });
    const again = await user.ask<Workflow>('POST', '/v1/workflows', { body });
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.body.id).toBe(first.body.id);
    const once = {
      body: { definition: 'publish', input: { page: 1, to: [2] } },
      headers: { 'idempotency-key': 'i' },
    };
    const answers = [
      await user.ask<Workflow>('POST', '/v1/workflows', once),
      await user.ask<Workflow>('POST', '/v1/workflows', once),
    ];
    expect(answers[1]!.body).toEqual(answers[0]!.body);
  });

  it('tells what is missing in the input, with a pointer', async () => {
    const user = await echoing();
    await define(user);
    const errorsOf = async (input: unknown) => {
      const answer = await start(user, input === undefined ? {} : { input });
      expect(answer.status).toBe(422);
      return answer.body.errors;
    };
    expect(await errorsOf(undefined)).toMatchObject([{ pointer: '/input' }, { pointer: '/input' }]);
    expect(await errorsOf({ page: 1 })).toMatchObject([
      { pointer: '/input/to', detail: expect.stringContaining('step "upload" needs "input.to.0"') },
    ]);
    expect(await errorsOf({ page: 1, to: [] })).toMatchObject([{ pointer: '/input/to/0' }]);
    expect(await errorsOf({ page: { $from: 'render.result' }, to: [1] })).toMatchObject([
      { pointer: '/input' },
    ]);
    expect((await user.get<Page<unknown>>('GET', '/v1/workflows')).data).toEqual([]);
  });

  it('keeps to the limits of payloads once the input is put in, of each step and of all', async () => {
    const user = await echoing();
    await define(user);
    const large = { page: 'x'.repeat(40_000), to: [1] };
    expect(await start(user, { input: large })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '/input' }] },
    });
    const payload = { $from: 'input' };
    const jobs = Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [`s${i}`, { task: 'echo', payload }]),
    );
    await define(user, { jobs });
    expect(await start(user, { input: 'x'.repeat(30_000) })).toMatchObject({
      status: 413,
      body: { code: 'PAYLOAD_TOO_LARGE', errors: [{ pointer: '/input' }] },
    });
  });

  it('checks the input by the schemas of tasks, and says so if a step has become wrong since', async () => {
    const user = await echoing();
    await define(user, { jobs: { a: { task: 'strict', payload: { n: { $from: 'input.n' } } } } });
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    await user.get('POST', '/v1/tasks', { body: { name: 'strict', payloadSchema: schema } });
    expect(await start(user, { input: { n: 'no' } })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '/definition', detail: expect.stringContaining('/jobs/a/payload/n') }] },
    });
    expect((await start(user, { input: { n: 1 } })).status).toBe(201);
  });

  it('refuses what does not go together', async () => {
    const user = node.newTenant();
    await define(user);
    for (const more of [{ jobs: PUBLISH.jobs }, { name: 'x' }, { onFailure: 'stop' }, { version: 0 }]) {
      expect((await start(user, more)).status).toBe(422);
    }
  });
});

it('an inline workflow takes an input too', async () => {
  const user = await echoing();
  const body = { name: 'inline', input: { page: [1, 2], to: ['x'] }, ...PUBLISH };
  const submitted = await user.get<Workflow>('POST', '/v1/workflows', { body });
  expect(submitted.definition).toBeNull();
  await workflowEnd(user, submitted);
  expect((await user.job(submitted.jobs.upload!.id)).result).toEqual({ html: [1, 2], to: 'x' });
  expect(await user.ask('POST', '/v1/workflows', { body: { name: 'inline', ...PUBLISH } })).toMatchObject({
    status: 422,
    body: { errors: [{ pointer: '/input' }, { pointer: '/input' }] },
  });
});

it('a restricted key reaches definitions all of whose steps it reaches', async () => {
  const user = await echoing();
  const keyFor = async (more: object) => {
    const body = { name: 'part', scopes: ['read', 'submit', 'admin'], tenant: user.tenant, ...more };
    return (await user.get<NewKeyView>('POST', '/v1/keys', { body })).key;
  };
  await define(user, { jobs: { a: { task: 'echo' } } });
  await define(
    user,
    { jobs: { a: { task: 'echo' }, b: { task: 'bill' } } },
    '/v1/workflow-definitions/money',
  );
  const key = await keyFor({ tasks: ['echo'] });
  const ask = (method: string, path: string, body?: unknown) =>
    node.ask(method, path, { key, ...(body !== undefined && { body }) });
  expect((await ask('POST', '/v1/workflows', { definition: 'publish' })).status).toBe(201);
  expect((await ask('POST', '/v1/workflows', { definition: 'money' })).status).toBe(404);
  expect((await ask('GET', '/v1/workflow-definitions/money')).status).toBe(404);
  expect((await ask('DELETE', '/v1/workflow-definitions/money')).status).toBe(404);
  const list = (await ask('GET', '/v1/workflow-definitions')).body as unknown as Page<{ name: string }>;
  expect(list.data.map(({ name }) => name)).toEqual(['publish']);
  const bill = { jobs: { a: { task: 'bill' } } };
  expect((await ask('PUT', PATH, bill)).status).toBe(403);
  expect((await ask('PUT', '/v1/workflow-definitions/money', { jobs: { a: { task: 'echo' } } })).status).toBe(
    403,
  );
  expect((await ask('PUT', PATH, { jobs: { z: { task: 'echo' } } })).status).toBe(200);
  // Without the scope, nothing is defined.
  const submitOnly = await keyFor({ scopes: ['read', 'submit'] });
  expect((await node.ask('PUT', PATH, { key: submitOnly, body: PUBLISH })).status).toBe(403);
});

it('no tenant sees or starts the definitions of another', async () => {
  const [mine, theirs] = [node.newTenant(), node.newTenant()];
  await define(mine);
  expect((await theirs.ask('GET', PATH)).status).toBe(404);
  expect((await theirs.ask('DELETE', PATH)).status).toBe(404);
  expect((await start(theirs, { input: { page: 1, to: [1] } })).status).toBe(404);
  expect((await theirs.get<Page<unknown>>('GET', '/v1/workflow-definitions')).data).toEqual([]);
  expect(await define(theirs)).toMatchObject({ version: 1 });
});

it('a replaced version is kept while a workflow from it is on record, and removed by the leader after that', async () => {
  const shard = await TestShard.forTest();
  const term = await shard.lead();
  const tenant = 'acme';
  const put = (i: number) =>
    putDefinition(
      shard.pool,
      {
        ...({ tenant, name: 'publish', jobs: '{}', onFailure: 'stop', running: 'finish', steps: 1 } as const),
        ...{ digest: Buffer.from([i]), queues: [], tasks: [], actor: 'x', now: i },
      },
      () => undefined,
      async () => undefined,
    );
  for (let i = 1; i <= 4; i++) await put(i);
  await shard.pool.query(
    `INSERT INTO punctual.workflows (id, tenant, name, steps, steps_left, on_failure, running, created_at, created_by, definition,
       definition_version) VALUES (gen_random_uuid(), $1, 'publish', 1, 1, 'stop', 'finish', 1, 'x', 'publish', 2)`,
    [tenant],
  );
  const forget = (before: number) => forgetVersions(shard.hot, term, BEFORE_ALL_VERSIONS, before);
  const versions = () => listVersions(shard.pool, tenant, 'publish');
  // What was replaced a moment ago may be about to be started.
  await forget(2);
  expect(await versions()).toEqual([4, 3, 2, 1]);
  await forget(100);
  expect(await versions()).toEqual([4, 2]);
  // The database itself keeps a version that is in use.
  await expect(
    shard.pool.query('DELETE FROM punctual.workflow_definitions WHERE version = 2'),
  ).rejects.toThrow('workflows_of_definition');
  await shard.pool.query('DELETE FROM punctual.workflows');
  await forget(100);
  expect(await versions()).toEqual([4]);
  await deleteDefinition(shard.pool, { tenant, name: 'publish', now: 50 }, async () => undefined);
  await forget(100);
  expect(await versions()).toEqual([]);
  // A number that once meant another graph is not used again, though nothing of that graph is left.
  expect((await put(9)).after).toMatchObject({ version: 5 });
});

it('numbers are not used again when there are too many names to remember each', async () => {
  const shard = await TestShard.forTest();
  const put = (name: string, i: number, limits?: { readonly names: number }) =>
    putDefinition(
      shard.pool,
      {
        ...({ tenant: 'acme', jobs: '{}', onFailure: 'stop', running: 'finish', steps: 1 } as const),
        ...{ name, digest: Buffer.from([i]), queues: [], tasks: [], actor: 'x', now: i },
      },
      () => undefined,
      async () => undefined,
      limits,
    );
  for (let i = 1; i <= 3; i++) await put('kept', i);
  for (let i = 1; i <= 5; i++) await put('gone', i);
  await put('another', 1);
  await shard.pool.query(`DELETE FROM punctual.workflow_definitions WHERE name <> 'kept'`);
  // Room for one more name: those that have no versions any more are forgotten, but not their numbers.
  expect((await put('new', 1, { names: 3 })).after).toMatchObject({ version: 6 });
  expect((await put('gone', 6)).after).toMatchObject({ version: 6 });
  expect((await put('kept', 4)).after).toMatchObject({ version: 4 });
  const { rows } = await shard.pool.query(
    'SELECT name, version FROM punctual.definition_numbers ORDER BY name',
  );
  expect(rows).toEqual([
    { name: '', version: 5 },
    { name: 'gone', version: 6 },
    { name: 'kept', version: 4 },
    { name: 'new', version: 6 },
  ]);
});

it('the upkeep of a leader removes them', async () => {
  const first = await TestNode.start();
  const { database } = first;
  for (const hours of [1, 2, 3]) await define(first, { jobs: { a: { wait: `${hours}h` } } });
  await withClient(database.url, (db) =>
    db.query('UPDATE punctual.workflow_definitions SET replaced_at = 0 WHERE replaced_at IS NOT NULL'),
  );
  await first.node.stop();
  const second = await TestNode.start({ database });
  try {
    await until(async () => (await second.get<StoredWorkflowDefinition>('GET', PATH)).versions.length === 1);
  } finally {
    await second.stop();
    await first.stop();
  }
});

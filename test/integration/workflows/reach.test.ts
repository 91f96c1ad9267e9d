import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KeyScope } from '../../../src/core/access.js';
import type { ClaimAnswer } from '../../../src/core/wire.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { type Answer, ApiUser, type Ask, TestNode, type TestTenant } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';

/** What keys that are restricted to queues and tasks reach of workflows. */

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const MAIL = { queues: ['mail'], tasks: ['send'] };
const send = { task: 'send', queue: 'mail' };
const payout = { task: 'payout', queue: 'finance' };

/** Somebody who talks to the node with a key of a tenant. */
class KeyUser extends ApiUser {
  constructor(private readonly key: string) {
    super();
  }

  override ask<T = Record<string, unknown>>(method: string, path: string, ask: Ask = {}): Promise<Answer<T>> {
    return node.ask(method, path, { ...ask, key: this.key });
  }
}

const ALL: readonly KeyScope[] = ['read', 'submit', 'work', 'admin'];

async function keyOf({ tenant }: TestTenant, scopes: readonly KeyScope[], limits: object): Promise<string> {
  const body = { name: 'part', scopes, tenant, ...limits };
  return (await node.get<{ key: string }>('POST', '/v1/keys', { body })).key;
}

/** A tenant, and somebody with a key of it that is restricted to the queue mail and the task send. */
async function restricted(scopes = ALL) {
  const tenant = node.newTenant();
  const key = await keyOf(tenant, scopes, MAIL);
  const ask = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
    node.ask<T>(method, path, { key, ...(body !== undefined && { body }) });
  return { tenant, ask };
}

const submit = (tenant: TestTenant, jobs: object) =>
  tenant.get<Workflow>('POST', '/v1/workflows', { body: { name: 'test', jobs } });

it('the tokens of a restricted key add nothing elsewhere, whichever key has opened the session', async () => {
  const { tenant, ask } = await restricted(['work']);
  const { id } = await submit(tenant, { a: send });
  const worker = await ProtocolWorker.register(new KeyUser(await keyOf(tenant, ['work'], {})), {
    queues: ['mail'],
    tasks: ['send'],
  });
  // It is not acknowledged, and so is offered again.
  for (const name of ['b', 'c']) {
    const { body } = await ask<ClaimAnswer>('POST', `/v1/workers/${worker.id}/claim`, {
      max: 1,
      wait: '20s',
    });
    const add = (jobs: object) =>
      node.ask('POST', `/v1/workflows/${id}/jobs`, { key: body.jobs[0]!.token!, body: { jobs } });
    expect(await add({ evil: payout })).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
    expect((await add({ [name]: { ...send, hold: true } })).status).toBe(201);
  }
});

/** Everything by which a key could find or steer a workflow. */
const STEERING: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['GET', ''],
  ['POST', '/events', { event: 'approved' }],
  ['POST', '/hold'],
  ['POST', '/rerun'],
  ['POST', '/retry'],
  ['POST', '/cancel'],
];

type KeyAsk = Awaited<ReturnType<typeof restricted>>['ask'];

async function expectUnreached(ask: KeyAsk, id: string): Promise<void> {
  for (const [method, path, body] of STEERING)
    expect([path, (await ask(method, `/v1/workflows/${id}${path}`, body)).status]).toEqual([path, 404]);
  const { body } = await ask<{ data: { id: string }[] }>('GET', '/v1/workflows');
  expect(body.data.map((each) => each.id)).not.toContain(id);
}

const read = (tenant: TestTenant, id: string) => tenant.get<Workflow>('GET', `/v1/workflows/${id}`);

/** The workflow that a step has started. */
async function startedBy(tenant: TestTenant, id: string, name: string): Promise<string> {
  await until(async () => (await read(tenant, id)).jobs[name]!.workflow !== null);
  return (await read(tenant, id)).jobs[name]!.workflow!;
}

const approval = { wait: { event: 'approved', timeout: '1d' } };

it('a restricted key does not reach a workflow that only waits, nor make one', async () => {
  const { tenant, ask } = await restricted();
  const { id } = await submit(tenant, { approval });
  await expectUnreached(ask, id);
  const graph = { jobs: { approval, inside: { workflow: { jobs: { approval } } } } };
  expect((await ask('POST', '/v1/workflows', { name: 'test', ...graph })).status).toBe(403);
  expect((await ask('PUT', '/v1/workflow-definitions/waits', graph)).status).toBe(403);
  await tenant.get('PUT', '/v1/workflow-definitions/waits', { body: graph });
  expect((await ask('GET', '/v1/workflow-definitions/waits')).status).toBe(404);
  expect((await ask('POST', '/v1/workflows', { definition: 'waits' })).status).toBe(404);
  // Beside a step that it reaches, it may wait.
  expect((await ask('POST', '/v1/workflows', { name: 'test', jobs: { approval, a: send } })).status).toBe(
    201,
  );
});

it('a key for the queue default does not reach the steps of others that only wait there', async () => {
  const tenant = node.newTenant();
  const key = await keyOf(tenant, ALL, { queues: ['default'] });
  const ask = (method: string, path: string, body?: unknown) =>
    node.ask(method, path, { key, ...(body !== undefined && { body }) });
  const inner = { workflow: { jobs: { approval } } };
  const { jobs } = await submit(tenant, { approval, inner, pay: { ...payout, after: ['approval'] } });
  for (const name of ['approval', 'inner']) {
    const path = `/v1/jobs/${jobs[name]!.id}`;
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/why'],
      ['POST', '/cancel'],
      ['POST', '/hold'],
    ] as const)
      expect([rest, (await ask(method, path + rest)).status]).toEqual([rest, 404]);
  }
  expect((await ask('GET', '/v1/jobs')).body).toMatchObject({ data: [] });
  expect((await ask('GET', `/v1/ids?kind=job&prefix=${jobs.approval!.id}`)).body).toMatchObject({ ids: [] });
  const many = await ask('POST', '/v1/jobs/cancel', { filter: { queue: 'default' } });
  expect(many.body).toMatchObject({ matched: 0, changed: 0 });
  // Whoever reaches the workflow reaches its waits.
  const own = await submit(tenant, { approval, a: { task: 'send', after: ['approval'] } });
  expect((await ask('POST', `/v1/jobs/${own.jobs.approval!.id}/cancel`)).status).toBe(200);
});

it('a workflow inside another is reached by the keys that reach the outer one', async () => {
  const { tenant, ask } = await restricted();
  const jobs = { ask: { workflow: { jobs: { approval } } }, mail: { workflow: { jobs: { a: send } } } };
  const secret = await submit(tenant, { ...jobs, pay: { ...payout, after: ['ask'] } });
  for (const name of ['ask', 'mail']) await expectUnreached(ask, await startedBy(tenant, secret.id, name));
  const open = await submit(tenant, { ...jobs, b: { ...send, after: ['ask'] } });
  const inner = await startedBy(tenant, open.id, 'ask');
  expect((await ask('POST', `/v1/workflows/${inner}/events`, { event: 'approved' })).status).toBe(200);
});

it('what is added to a workflow inside another counts for all of them', async () => {
  const { tenant, ask } = await restricted();
  const jobs = { add: { workflow: { jobs: { a: send } } }, ask: { workflow: { jobs: { approval } } } };
  const { id } = await submit(tenant, { deeper: { workflow: { jobs } } });
  const middle = await startedBy(tenant, id, 'deeper');
  const all = [id, middle, await startedBy(tenant, middle, 'add'), await startedBy(tenant, middle, 'ask')];
  for (const each of all) expect((await ask('GET', `/v1/workflows/${each}`)).status).toBe(200);
  const worker = await ProtocolWorker.register(tenant, { queues: ['mail'], tasks: ['send'] });
  const [{ jobId, fence } = { jobId: '', fence: 0 }] = await worker.claim();
  await tenant.get('POST', `/v1/workflows/${all[2]}/jobs`, {
    body: { by: { jobId, fence }, jobs: { pay: payout } },
  });
  for (const each of all) await expectUnreached(ask, each);
});

it('a schedule whose workflow runs elsewhere by now is not found', async () => {
  const { tenant, ask } = await restricted();
  const jobs = { a: { task: 'send' }, b: { workflow: { jobs: { c: { task: 'send' } } } } };
  await tenant.get('POST', '/v1/tasks', { body: { name: 'send', queue: 'mail' } });
  await tenant.get('PUT', '/v1/workflow-definitions/mails', { body: { jobs } });
  await tenant.get('POST', '/v1/schedules', { body: { name: 'daily', every: '1d', workflow: 'mails' } });
  expect((await ask('POST', '/v1/schedules/daily/run')).status).toBe(201);
  await tenant.get('PATCH', '/v1/tasks/send', { body: { queue: 'finance' } });
  const before = await tenant.get<{ data: object[] }>('GET', '/v1/workflows?schedule=daily');
  const range = { from: '2020-01-01T00:00:00Z', to: '2020-01-03T00:00:00Z' };
  expect((await ask('POST', '/v1/schedules/daily/run')).status).toBe(404);
  expect((await ask('POST', '/v1/schedules/daily/backfill', range)).status).toBe(404);
  expect((await ask('GET', '/v1/schedules/daily')).status).toBe(404);
  expect((await ask('POST', '/v1/schedules', { name: 'mine', every: '1d', workflow: 'mails' })).status).toBe(
    403,
  );
  const after = await tenant.get<{ data: object[] }>('GET', '/v1/workflows?schedule=daily');
  expect(after.data.length).toBe(before.data.length);
});

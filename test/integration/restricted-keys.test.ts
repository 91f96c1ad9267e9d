import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KeyScope, NewKeyView } from '../../src/core/access.js';
import type { Job } from '../../src/core/job.js';
import type { FencedJob, Why } from '../../src/core/wire.js';
import type { Workflow } from '../../src/core/workflow.js';
import { type Answer, ApiUser, type Ask, TestNode } from '../node-for-tests.js';
import { lockWaits, withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { until } from './store/test-shard.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** Somebody who talks to a node with a key of its own. */
class KeyUser extends ApiUser {
  constructor(
    private readonly node: TestNode,
    private readonly key: string,
  ) {
    super();
  }

  override ask<T = Record<string, unknown>>(method: string, path: string, ask: Ask = {}): Promise<Answer<T>> {
    return this.node.ask(method, path, { ...ask, key: this.key });
  }
}

const ALL: readonly KeyScope[] = ['read', 'submit', 'work', 'admin'];

/** Somebody with a key that is restricted to these queues and tasks, in a tenant of its own with two jobs. */
async function restricted(limits: { queues?: string[]; tasks?: string[] }) {
  const tenant = node.newTenant();
  const { key } = await tenant.get<NewKeyView>('POST', '/v1/keys', {
    body: { name: 'part', scopes: ALL, tenant: tenant.tenant, ...limits },
  });
  const inside = await tenant.submit({ task: 'greet', queue: 'mail', key: 'in' });
  const outside = await tenant.submit({ task: 'bill', queue: 'money', key: 'out' });
  const ask = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
    node.ask<T>(method, path, { key, ...(body !== undefined && { body }) } satisfies Ask);
  return { tenant, ask, key, inside, outside };
}

describe.each([
  ['queues', { queues: ['mail'] }],
  ['tasks', { tasks: ['greet'] }],
])('a key that is restricted to %s', (_, limits) => {
  it('submits there and nowhere else', async () => {
    const { ask } = await restricted(limits);
    const jobs = [
      { task: 'greet', queue: 'mail' },
      { task: 'bill', queue: 'money' },
    ];
    expect((await ask('POST', '/v1/jobs', jobs[0])).status).toBe(201);
    expect(await ask('POST', '/v1/jobs', jobs[1])).toMatchObject({
      status: 403,
      body: { code: 'FORBIDDEN' },
    });
    expect(await ask('POST', '/v1/jobs/bulk', { jobs })).toMatchObject({ status: 403 });
  });

  it.each([
    ['keeps', {}],
    ['replaces', { keyMode: 'replace' }],
    ['follows', { keyMode: 'throttle', keyWindow: '1ms' }],
  ])('learns nothing of a job elsewhere by its key, whether it %s that or not', async (_, mode) => {
    const { ask, tenant, inside, outside } = await restricted(limits);
    const job = { task: 'greet', queue: 'mail', payload: 'mine', ...mode };
    const before = await tenant.job(outside.id);
    const requests = [
      ['/v1/jobs', { ...job, key: 'out' }],
      [
        '/v1/jobs/bulk',
        {
          jobs: [
            { ...job, key: 'new' },
            { ...job, key: 'out' },
          ],
        },
      ],
    ] as const;
    for (const [path, body] of requests) {
      const answer = await ask('POST', path, body);
      expect(answer).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
      expect(JSON.stringify(answer.body)).not.toContain(outside.id);
    }
    expect(await tenant.job(outside.id)).toEqual(before);
    const { data } = await tenant.get<{ data: Job[] }>('GET', '/v1/jobs');
    expect(data.map(({ id }) => id)).toEqual([outside.id, inside.id]);
    // The key of a job that it reaches is like any other.
    const bulk = await ask<{ ids: string[] }>('POST', '/v1/jobs/bulk', { jobs: [{ ...job, key: 'in' }] });
    expect(bulk.status).toBe(201);
    if (!('keyWindow' in mode)) expect(bulk.body.ids).toEqual([inside.id]);
    expect((await ask('POST', '/v1/jobs', { ...job, key: 'in' })).status).toBeLessThan(300);
  });

  it('learns nothing of a job elsewhere that gets its key at the same moment', async () => {
    const { ask, tenant } = await restricted(limits);
    await withClient(node.database.url, async (client) => {
      // The other submission has registered its key by the time it waits for the table.
      await client.query('BEGIN');
      await client.query('LOCK TABLE punctual.jobs IN SHARE MODE');
      const other = tenant.submit({ task: 'bill', queue: 'money', key: 'race' });
      await until(async () => (await lockWaits(client)) >= 1);
      const mine = ask('POST', '/v1/jobs', { task: 'greet', queue: 'mail', key: 'race' });
      await until(async () => (await lockWaits(client)) >= 2);
      await client.query('ROLLBACK');
      await other;
      expect(await mine).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
    });
  });

  it('finds the jobs there and no others', async () => {
    const { ask, inside, outside } = await restricted(limits);
    for (const path of ['', '/logs', '/why']) {
      expect((await ask('GET', `/v1/jobs/${inside.id}${path}`)).status).toBe(200);
      expect(await ask('GET', `/v1/jobs/${outside.id}${path}`)).toMatchObject({
        status: 404,
        body: { code: 'JOB_NOT_FOUND' },
      });
    }
    const listed = async (query: string) =>
      (await ask<{ data: Job[] }>('GET', `/v1/jobs?${query}`)).body.data.map(({ id }) => id);
    expect(await listed('')).toEqual([inside.id]);
    expect(await listed('queue=money')).toEqual([]);
    expect(await listed('task=bill')).toEqual([]);
    expect(await listed('key=out')).toEqual([]);
    expect(await listed('key=in')).toEqual([inside.id]);
    const ids = async (id: string) =>
      (await ask<{ ids: string[] }>('GET', `/v1/ids?kind=job&prefix=${id}`)).body.ids;
    expect(await ids(inside.id)).toEqual([inside.id]);
    expect(await ids(outside.id)).toEqual([]);
  });

  it('steers the jobs there and no others', async () => {
    const { ask, tenant, inside, outside } = await restricted(limits);
    for (const [method, path, body] of [
      ['POST', '/hold', undefined],
      ['POST', '/release', undefined],
      ['PATCH', '', { priority: 9 }],
      ['POST', '/complete', { fence: 1 }],
      ['POST', '/progress', { fence: 1, progress: 0.5 }],
      ['POST', '/logs', { fence: 1, lines: [] }],
      ['POST', '/cancel', undefined],
    ] as const) {
      const { status } = await ask(method, `/v1/jobs/${outside.id}${path}`, body);
      expect([path, status]).toEqual([path, path === '/complete' ? 409 : 404]);
    }
    expect(await ask('POST', '/v1/jobs/cancel', { ids: [outside.id] })).toMatchObject({ status: 403 });
    expect((await ask('POST', '/v1/jobs/cancel', { all: true })).body).toMatchObject({ changed: 1 });
    expect((await tenant.job(inside.id)).state).toBe('cancelled');
    expect((await tenant.job(outside.id)).state).toBe('pending');
  });

  it('opens workers for that and nothing else, and speaks for no worker that may receive more', async () => {
    const { ask, tenant } = await restricted(limits);
    const registration = (queues: string[], tasks: string[]) => ({
      ...{ name: 'w', queues, slots: 1, targets: ['handler'], tasks, labels: {} },
    });
    const opened = await ask('POST', '/v1/workers', registration(['mail'], ['greet']));
    expect(opened.status).toBe(201);
    for (const beyond of [
      registration(['*'], ['bill']),
      registration(['mail', 'money'], ['greet', 'bill']),
    ]) {
      expect(await ask('POST', '/v1/workers', beyond)).toMatchObject({
        status: 403,
        body: {
          detail: expect.stringMatching(
            /(\(the key: mail\).* Start it with --queues mail|task bill \(the key: greet\))\.$/,
          ),
        },
      });
      const { workerId } = await tenant.get<{ workerId: string }>('POST', '/v1/workers', { body: beyond });
      for (const [verb, body] of [
        ['claim', { max: 1, wait: '0s' }],
        ['heartbeat', { epoch: 1, running: [] }],
      ] as const) {
        expect(await ask('POST', `/v1/workers/${workerId}/${verb}`, body)).toMatchObject({
          status: 404,
          body: { code: 'WORKER_NOT_FOUND' },
        });
      }
      await tenant.get('DELETE', `/v1/workers/${workerId}`);
    }
  });

  it('makes and changes schedules there and no others', async () => {
    const { ask, tenant } = await restricted(limits);
    const schedule = (name: string, task: string, queue: string) => ({ name, task, queue, every: '1h' });
    expect((await ask('POST', '/v1/schedules', schedule('a', 'greet', 'mail'))).status).toBe(201);
    expect((await ask('POST', '/v1/schedules', schedule('b', 'bill', 'money'))).status).toBe(403);
    await tenant.get('POST', '/v1/schedules', { body: schedule('b', 'bill', 'money') });
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['GET', '/occurrences', undefined],
      ['PATCH', '', { every: '2h' }],
      ['POST', '/pause', undefined],
      ['POST', '/run', undefined],
      ['DELETE', '', undefined],
    ] as const) {
      expect([path, (await ask(method, `/v1/schedules/b${path}`, body)).status]).toEqual([path, 404]);
    }
    expect((await ask('PATCH', '/v1/schedules/a', { task: 'bill', queue: 'money' })).status).toBe(403);
    const { body } = await ask<{ data: { name: string }[] }>('GET', '/v1/schedules');
    expect(body.data.map(({ name }) => name)).toEqual(['a']);
  });
});

it('a key that is restricted to queues sees and changes no others', async () => {
  const { ask } = await restricted({ queues: ['mail', 'post'] });
  const { body } = await ask<{ data: { name: string }[] }>('GET', '/v1/queues');
  expect(body.data.map(({ name }) => name)).toEqual(['mail']);
  expect((await ask('GET', '/v1/queues/money')).status).toBe(404);
  expect((await ask('POST', '/v1/queues/money/pause')).status).toBe(404);
  expect((await ask('PATCH', '/v1/queues/money', { weight: 2 })).status).toBe(404);
  expect((await ask('PATCH', '/v1/queues/post', { weight: 2 })).status).toBe(200);
  // A list follows one queue, so a key for several says which.
  expect((await ask('GET', '/v1/jobs')).status).toBe(403);
  expect((await ask('GET', '/v1/jobs?queue=mail')).status).toBe(200);
});

describe('a key that is restricted to a queue', () => {
  it('cannot get into another queue by the definition of a task', async () => {
    const { tenant, ask } = await restricted({ queues: ['mail', 'default'] });
    await tenant.get('POST', '/v1/tasks', { body: { name: 'pay', queue: 'money' } });
    expect((await ask('POST', '/v1/jobs', { task: 'pay' })).status).toBe(403);
    const schedule = { name: 'payday', task: 'pay', every: '1d' };
    expect((await ask('POST', '/v1/schedules', schedule)).status).toBe(403);
    await tenant.get('POST', '/v1/schedules', { body: schedule });
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/run'],
      ['DELETE', ''],
    ] as const) {
      expect((await ask(method, `/v1/schedules/payday${path}`)).status).toBe(404);
    }
    expect((await ask<{ data: unknown[] }>('GET', '/v1/schedules')).body.data).toEqual([]);
  });

  it('changes no definition of a task', async () => {
    const { tenant, ask } = await restricted({ queues: ['mail'] });
    await tenant.get('POST', '/v1/tasks', { body: { name: 'greet', queue: 'mail' } });
    expect((await ask('POST', '/v1/tasks', { name: 'greet', queue: 'money' })).status).toBe(403);
    expect((await ask('PATCH', '/v1/tasks/greet', { queue: 'money' })).status).toBe(403);
    expect((await ask('DELETE', '/v1/tasks/greet')).status).toBe(403);
    expect(await ask('GET', '/v1/tasks/greet')).toMatchObject({ status: 200, body: { queue: 'mail' } });
  });

  it('may not ask for events of another queue, and hears none of them unasked', async () => {
    const { tenant, ask, key } = await restricted({ queues: ['mail'] });
    expect((await ask('GET', '/v1/events?queue=mail,money')).status).toBe(403);
    const gone = new AbortController();
    const response = await fetch(`${node.url}/v1/events?type=job.submitted`, {
      headers: { authorization: `Bearer ${key}` },
      signal: gone.signal,
    });
    let heard = '';
    for await (const chunk of response.body!) {
      const isFirst = heard === '';
      heard += Buffer.from(chunk).toString();
      if (isFirst) {
        await tenant.submit({ task: 'bill', queue: 'money' });
        await tenant.submit({ task: 'greet', queue: 'mail' });
      }
      if (heard.includes('job.submitted')) break;
    }
    gone.abort();
    expect(heard).toContain('"queue":"mail"');
    expect(heard).not.toContain('money');
  });
});

describe('a key that is restricted to a task', () => {
  it('reports whatever its workers were given: for them, its tasks are handlers', async () => {
    const { tenant, key, ask } = await restricted({ tasks: ['run'] });
    const target = { type: 'handler', name: 'run' };
    await tenant.get('POST', '/v1/tasks', { body: { name: 'payroll', target } });
    const jobs = [
      await tenant.submit({ target }),
      await tenant.submit({ task: 'payroll' }),
      await tenant.submit({ task: 'run' }),
    ];
    const worker = await ProtocolWorker.register(new KeyUser(node, key), { tasks: ['run'], slots: 5 });
    const given = new Map<string, FencedJob>();
    while (given.size < jobs.length) for (const job of await worker.claim(5)) given.set(job.jobId, job);
    const [inline, payroll, own] = jobs.map(({ id }) => given.get(id)!) as [FencedJob, FencedJob, FencedJob];
    for (const { jobId, fence } of [inline, payroll, own]) {
      const progress = { fence, progress: 0.5 };
      expect((await ask('POST', `/v1/jobs/${jobId}/progress`, progress)).status).toBe(204);
      const line = { at: new Date().toISOString(), level: 'info', message: 'on it' };
      expect((await ask('POST', `/v1/jobs/${jobId}/logs`, { fence, lines: [line] })).status).toBe(204);
    }
    expect(await worker.succeed(inline)).toMatchObject({ accepted: [inline.jobId] });
    const { jobId, fence } = payroll;
    expect((await ask('POST', `/v1/jobs/${jobId}/fail`, { fence, error: { message: 'no' } })).status).toBe(
      204,
    );
    expect(await worker.succeed(own)).toMatchObject({ accepted: [own.jobId] });
    // A report that is repeated because its answer was lost is accepted again.
    expect(await worker.succeed(inline)).toMatchObject({ accepted: [inline.jobId] });
    expect((await tenant.ended(inline.jobId)).state).toBe('succeeded');
    // Reading goes by the task.
    expect((await ask('GET', `/v1/jobs/${payroll.jobId}`)).status).toBe(404);
    expect((await ask('GET', `/v1/jobs/${own.jobId}`)).status).toBe(200);
  });

  it('reports nothing that runs another handler, even if its task is of that name', async () => {
    const { tenant, ask } = await restricted({ tasks: ['run'] });
    await tenant.get('POST', '/v1/tasks', {
      body: { name: 'run', target: { type: 'handler', name: 'other' } },
    });
    const { id } = await tenant.submit({ task: 'run' });
    const worker = await ProtocolWorker.register(tenant, { tasks: ['other'] });
    const { fence } = await worker.claimOne();
    expect((await ask('POST', `/v1/jobs/${id}/complete`, { fence })).status).toBe(409);
    expect((await ask('POST', `/v1/jobs/${id}/progress`, { fence, progress: 0.5 })).status).toBe(404);
    expect((await tenant.job(id)).state).toBe('running');
  });

  it('sees the definition of that task and no other', async () => {
    const { tenant, ask } = await restricted({ tasks: ['greet'] });
    for (const name of ['bill', 'greet']) await tenant.get('POST', '/v1/tasks', { body: { name } });
    const { body } = await ask<{ data: { name: string }[] }>('GET', '/v1/tasks');
    expect(body.data.map(({ name }) => name)).toEqual(['greet']);
    expect((await ask('GET', '/v1/tasks/bill')).status).toBe(404);
  });
});

it('a restricted key learns nothing of the other steps of a workflow, and does not run them again', async () => {
  const { tenant, ask } = await restricted({ queues: ['mail'] });
  const { jobs } = await tenant.get<Workflow>('POST', '/v1/workflows', {
    body: {
      name: 'mixed',
      jobs: {
        secret: { task: 'bill', queue: 'money' },
        mail: { task: 'greet', queue: 'mail', after: ['secret'] },
      },
    },
  });
  const path = `/v1/jobs/${jobs.mail!.id}`;
  expect(await ask('GET', path)).toMatchObject({ status: 200, body: { dependsOn: [], ancestors: [] } });
  expect(await tenant.get('GET', path)).toMatchObject({ dependsOn: [jobs.secret!.id] });
  const why = await ask<Why>('GET', `${path}/why`);
  expect(why.body).toMatchObject({ gate: 'parents', figures: { parentsLeft: 1 } });
  expect(why.body.detail).not.toContain('secret');
  expect((await tenant.get<Why>('GET', `${path}/why`)).detail).toContain('secret');
  await tenant.get('POST', `${path}/cancel`);
  expect(await ask('POST', `${path}/retry`)).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
});

it('a restricted key runs a step again in a workflow that it reaches as a whole', async () => {
  const { ask } = await restricted({ queues: ['mail'] });
  const { body } = await ask<Workflow>('POST', '/v1/workflows', {
    name: 'own',
    jobs: { a: { task: 'greet', queue: 'mail', hold: true } },
  });
  const path = `/v1/jobs/${body.jobs.a!.id}`;
  await ask('POST', `${path}/cancel`);
  expect((await ask('POST', `${path}/retry`)).status).toBe(200);
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { FIRST_UUID } from '../../../src/core/uuid.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { readSubmittedSteps } from '../../../src/store/read-submitted-steps.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { notingTask, statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const rerun = (user: TestTenant, { id }: { readonly id: string }, body?: object, headers?: object) =>
  user.ask<Workflow & { code: string }>('POST', `/v1/workflows/${id}/rerun`, {
    ...(body && { body }),
    ...(headers && { headers: headers as Record<string, string> }),
  });

/** The edges and conditions of a workflow. */
function graphOf({ jobs }: Workflow): Record<string, object> {
  return Object.fromEntries(
    Object.entries(jobs).map(([name, { after, runIf }]) => [name, { after: [...after].sort(), runIf }]),
  );
}

it('an ended workflow runs again as a new one, with the payloads as they were submitted', async () => {
  const user = node.newTenant();
  const ran: string[] = [];
  await user.work([notingTask(ran)]);
  const jobs = {
    a: step('a', [], { payload: { name: 'a', big: 12345678901234567890n.toString() } }),
    b: step('b', ['a'], {
      payload: { name: 'b', of: { $from: 'a.result.name' } },
      priority: 8,
      timeout: '7m',
    }),
    paid: { wait: { event: 'paid', timeout: '1h' }, after: ['b'] },
    alert: step('alert', ['b'], { runIf: 'any-failed' }),
  };
  const options = { key: 'one', onFailure: 'stop', running: 'cancel' } as const;
  const first = await submitWorkflow(user, { name: 'publish', jobs: jobs as never, ...options });
  await user.get('POST', `/v1/workflows/${first.id}/events`, { body: { event: 'paid', payload: 1 } });
  await workflowEnd(user, first);

  const { status, body } = await rerun(user, first);
  expect(status).toBe(201);
  expect(body).toMatchObject({
    ...{ name: 'publish', key: null, rerunOf: first.id, state: 'running', run: 1 },
    ...{ onFailure: 'stop', running: 'cancel', held: false, progress: { steps: 4, ended: 0, failed: 0 } },
  });
  expect(body.id).not.toBe(first.id);
  expect(graphOf(body)).toEqual(graphOf(first));
  const ids = (workflow: Workflow) => Object.values(workflow.jobs).map(({ id }) => id);
  expect(ids(body).filter((id) => ids(first).includes(id))).toEqual([]);

  await user.ended(body.jobs.b!.id);
  const again = await user.job(body.jobs.b!.id);
  expect(again).toMatchObject({
    payload: { name: 'b', of: 'a' },
    priority: 8,
    timeout: '7m',
    state: 'succeeded',
  });
  expect((await user.job(body.jobs.a!.id)).payload).toEqual((await user.job(first.jobs.a!.id)).payload);
  // Events of the first one are not those of the second.
  expect(statesOf(await user.get('GET', `/v1/workflows/${body.id}`)).paid).toBe('blocked');
  await user.get('POST', `/v1/workflows/${body.id}/events`, { body: { event: 'paid' } });
  expect((await workflowEnd(user, body)).state).toBe('succeeded');
  expect([...ran].sort()).toEqual(['a', 'a', 'b', 'b']);
});

it('a running workflow runs again from its beginning, with delays and holds as they were submitted', async () => {
  const user = node.newTenant();
  const jobs = {
    late: step('late', [], { delay: '2h' }),
    held: step('held', [], { hold: true }),
    b: step('b', ['late', 'held'], { delay: '3m' }),
  };
  const first = await submitWorkflow(user, { jobs: jobs as never });
  await user.get('POST', `/v1/jobs/${first.jobs.held!.id}/release`);
  const { status, body } = await rerun(user, first);
  expect(status).toBe(201);
  expect(statesOf(body)).toEqual({ late: 'pending', held: 'pending', b: 'blocked' });
  expect((await user.job(body.jobs.held!.id)).hold).toBe(true);
  const late = await user.job(body.jobs.late!.id);
  expect(Date.parse(late.runAt) - Date.parse(late.createdAt)).toBe(7_200_000);
  const steps = await withClient(node.database.url, (client) =>
    client.query(
      'SELECT name, delay_ms::int AS delay FROM punctual.steps WHERE workflow = $1 ORDER BY name',
      [body.id],
    ),
  );
  expect(steps.rows).toEqual([
    { name: 'b', delay: 180_000 },
    { name: 'held', delay: 0 },
    { name: 'late', delay: 7_200_000 },
  ]);
});

it('a key makes it one workflow, and an Idempotency-Key one request', async () => {
  const user = node.newTenant();
  const first = await submitWorkflow(user, { jobs: { a: step('a') } as never });
  const [second, third] = [await rerun(user, first, { key: 'k' }), await rerun(user, first, { key: 'k' })];
  expect([second.status, third.status]).toEqual([201, 200]);
  expect([second.body.key, third.body.id]).toEqual(['k', second.body.id]);
  const headers = { 'idempotency-key': 'again' };
  const [fourth, fifth] = [
    await rerun(user, first, undefined, headers),
    await rerun(user, first, undefined, headers),
  ];
  expect([fourth.status, fifth.status, fifth.body.id]).toEqual([201, 201, fourth.body.id]);
  expect((await rerun(node.newTenant(), first)).status).toBe(404);
});

it('at-most-once steps have new jobs, each of which starts once', async () => {
  const user = node.newTenant();
  const ran: string[] = [];
  await user.work([notingTask(ran)]);
  const once = { task: 'note', payload: { name: 'once', fails: true }, delivery: 'at-most-once' };
  const first = await submitWorkflow(user, { jobs: { once } as never });
  expect((await workflowEnd(user, first)).state).toBe('failed');
  const { body } = await rerun(user, first);
  expect((await workflowEnd(user, body)).state).toBe('failed');
  expect(ran).toEqual(['once', 'once']);
  const job = await user.job(body.jobs.once!.id);
  expect([job.delivery, job.attempts.length]).toEqual(['at-most-once', 1]);
});

it('steps that others added are not part of what runs again', async () => {
  const user = node.newTenant();
  const worker = await ProtocolWorker.register(user, { tasks: ['note'] });
  const first = await submitWorkflow(user, { jobs: { a: step('a'), last: step('last', ['a']) } as never });
  const { jobId, fence } = await worker.claimOne();
  const body = { by: { jobId, fence }, jobs: { b: step('b') } };
  await user.get('POST', `/v1/workflows/${first.id}/jobs`, { body });
  const whileItRuns = await rerun(user, first);
  expect([whileItRuns.status, graphOf(whileItRuns.body)]).toEqual([201, graphOf(first)]);
  await user.get('POST', `/v1/workflows/${whileItRuns.body.id}/cancel`);
  await worker.succeed({ jobId, fence });
  for (const _ of ['b', 'last']) await worker.succeed(await worker.claimOne());
  const ended = await workflowEnd(user, first);
  expect([ended.state, ended.progress.steps]).toEqual(['succeeded', 3]);
  expect(graphOf((await rerun(user, first)).body)).toEqual(graphOf(first));
});

it('a workflow of a definition runs again with the input and the version that it had', async () => {
  const user = node.newTenant();
  await user.work([notingTask([])]);
  const jobs = { a: step('a', [], { payload: { name: { $from: 'input.who' } } }) };
  await user.get('PUT', '/v1/workflow-definitions/greeting', { body: { jobs } });
  const first = await user.get<Workflow>('POST', '/v1/workflows', {
    body: { definition: 'greeting', input: { who: 'Ada' } },
  });
  await workflowEnd(user, first);
  await user.get('PUT', '/v1/workflow-definitions/greeting', { body: { jobs: { a: step('other') } } });
  const { status, body } = await rerun(user, first);
  expect([status, body.definition]).toEqual([201, { name: 'greeting', version: 1 }]);
  await workflowEnd(user, body);
  expect((await user.job(body.jobs.a!.id)).payload).toEqual({ name: 'Ada' });
});

it('a workflow whose jobs have left history cannot run again: 410', async () => {
  const user = node.newTenant();
  await user.work([notingTask([])]);
  const first = await submitWorkflow(user, { jobs: { a: step('a'), b: step('b', ['a']) } as never });
  await workflowEnd(user, first);
  await withClient(node.database.url, (client) =>
    client.query('DELETE FROM punctual.job_history WHERE id = $1', [first.jobs.a!.id]),
  );
  const { status, body } = await rerun(user, first);
  expect([status, body.code]).toEqual([410, 'STEPS_GONE']);
});

it('a restricted key repeats only what it may submit', async () => {
  const user = node.newTenant();
  const jobs = { a: step('a'), b: step('b', ['a'], { queue: 'secret' }) };
  const first = await submitWorkflow(user, { jobs: jobs as never });
  const { key } = await node.get<{ key: string }>('POST', '/v1/keys', {
    body: { tenant: user.tenant, name: 'r', scopes: ['submit', 'read'], queues: ['default'] },
  });
  expect((await node.ask('POST', `/v1/workflows/${first.id}/rerun`, { key })).status).toBe(404);
});

it('ten thousand steps run again within bounds', async () => {
  const user = node.newTenant();
  const jobs: Record<string, object> = { first: step('first') };
  for (let i = 0; i < 9_999; i++) jobs[`m${i}`] = step(`m${i}`, ['first'], { payload: { i } });
  const first = await submitWorkflow(user, { jobs: jobs as never });
  const before = performance.now();
  const { status, body } = await rerun(user, first);
  console.log(`ten thousand steps again in ${Math.round(performance.now() - before)} ms`);
  expect([status, body.progress.steps]).toEqual([201, 10_000]);
  expect((await user.job(body.jobs.m77!.id)).payload).toEqual({ i: 77 });
}, 60_000);

it('steps with large payloads are read some bytes at a time, each once', async () => {
  const user = node.newTenant();
  const payload = 'x'.repeat(100_000);
  const jobs = Object.fromEntries(
    Array.from({ length: 12 }, (_, i) => [`s${i}`, step(`s${i}`, [], { payload, hold: true })]),
  );
  const { id } = await submitWorkflow(user, { jobs: jobs as never });
  const { hot } = node.node.context.shards[0]!;
  const pages: string[][] = [];
  for (let after = FIRST_UUID; ; ) {
    const page = await readSubmittedSteps(hot, user.tenant, id, after, 200, 250_000);
    if (page.length === 0) break;
    pages.push(page.map(({ name }) => name));
    after = page.at(-1)!.id;
  }
  expect(pages.map((page) => page.length)).toEqual([3, 3, 3, 3]);
  expect(new Set(pages.flat()).size).toBe(12);
  expect((await rerun(user, { id })).status).toBe(201);
});

it('a step that is a workflow of its own runs again as one', async () => {
  const user = node.newTenant();
  const ran: string[] = [];
  await user.work([notingTask(ran)]);
  const jobs = {
    pages: { workflow: { jobs: { one: step('one'), two: step('two', ['one']) } } },
    done: step('done', ['pages']),
  };
  const first = await submitWorkflow(user, { jobs: jobs as never });
  expect((await workflowEnd(user, first)).state).toBe('succeeded');

  const { body } = await rerun(user, first);
  const again = await workflowEnd(user, body);
  expect(statesOf(again)).toEqual({ pages: 'succeeded', done: 'succeeded' });
  expect(again.jobs.pages!.workflow).not.toBe((await workflowEnd(user, first)).jobs.pages!.workflow);
  expect(ran).toEqual(['one', 'two', 'done', 'one', 'two', 'done']);
});

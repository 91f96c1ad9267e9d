import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { task } from '../../../src/core/task.js';
import { createTestDatabase } from '../../database.js';
import { EventListener } from '../../event-listener.js';
import { nodeForTest, TestNode, type TestTenant } from '../../node-for-tests.js';
import { endedBatch, submitBatch } from '../batches/batch-user.js';
import { until } from '../store/test-shard.js';
import { notingTask, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

async function hear(tenant: TestTenant, query = '', url = node.url): Promise<EventListener> {
  const { apiKey } = node;
  const listener = await EventListener.open({ url, apiKey, tenant: tenant.tenant, query });
  onTestFinished(() => listener.close());
  await listener.until(() => true);
  return listener;
}

/** What was told, without the messages of the stream itself. */
function told(listener: EventListener): (string | undefined)[][] {
  return listener.heard
    .filter(({ event }) => event !== 'hello')
    .map(({ event, data: { job, change } }) => [event, job, ...(change ? [change] : [])]);
}

it('a workflow is told from its submission to its end, and so are its jobs, which name it', async () => {
  const user = node.newTenant();
  await user.work([notingTask([])]);
  const all = await hear(user);
  const { id, jobs } = await submitWorkflow(user, {
    jobs: { a: step('a'), b: step('b', ['a'], { runIf: 'any-failed' }) } as never,
  });
  await all.until(() => all.types.includes('workflow.succeeded'));
  const of = all.heard.filter(({ data }) => data.workflow === id);
  expect(of.map(({ event }) => event)).toEqual([
    'workflow.submitted',
    'job.submitted',
    'job.started',
    'job.succeeded',
    'job.skipped',
    'workflow.succeeded',
  ]);
  expect(of.map(({ data }) => data.job)).toEqual([
    undefined,
    ...[jobs.a!.id, jobs.a!.id, jobs.a!.id, jobs.b!.id],
    undefined,
  ]);
  expect(of.at(-1)!.data).toMatchObject({ type: 'workflow.succeeded', state: 'succeeded', workflow: id });
  // Nothing else is about it.
  const others = all.heard.filter(({ data }) => data.workflow === undefined);
  expect(others.filter(({ event }) => /^(job|workflow)\./.test(event))).toEqual([]);
});

it('a filter by workflow hears the events of one and of its jobs, through stopping, retry and end', async () => {
  const user = node.newTenant();
  let fails = true;
  const flaky = task('note', { retry: { maxAttempts: 1 } }, async () => {
    if (fails) throw new Error('it fails');
  });
  await user.work([flaky]);
  const jobs = { a: step('a', [], { hold: true }), b: step('b', ['a']) } as never;
  const [{ id, jobs: made }] = [await submitWorkflow(user, { onFailure: 'stop', jobs })];
  const listener = await hear(user, `?workflow=${id}`);
  await workflowEnd(user, await submitWorkflow(user, { jobs: { only: step('only') } as never }));
  await user.get('POST', `/v1/jobs/${made.a!.id}/release`);
  await workflowEnd(user, { id });
  fails = false;
  await user.get('POST', `/v1/workflows/${id}/retry`, { body: {} });
  await listener.until(() => listener.types.includes('workflow.succeeded'));
  const [a, b] = [made.a!.id, made.b!.id];
  expect(told(listener)).toEqual([
    ['job.changed', a, 'release'],
    ['job.started', a],
    ['job.failed', a],
    ['workflow.stopping', undefined, 'failure'],
    ['job.skipped', b],
    ['workflow.failed', undefined],
    ['workflow.retried', undefined],
    ['job.started', a],
    ['job.succeeded', a],
    ['job.started', b],
    ['job.succeeded', b],
    ['workflow.succeeded', undefined],
  ]);
});

it('a workflow is told when it is held and released, stops and has ended', async () => {
  const user = node.newTenant();
  const { id } = await submitWorkflow(user, { jobs: { a: step('a'), b: step('b', ['a']) } as never });
  const listener = await hear(user, `?workflow=${id}&type=workflow.*`);
  await user.get('POST', `/v1/workflows/${id}/hold`);
  await user.get('POST', `/v1/workflows/${id}/release`);
  await user.get('POST', `/v1/workflows/${id}/cancel`);
  await listener.until(() => listener.types.includes('workflow.cancelled'));
  expect(told(listener)).toEqual([
    ['workflow.changed', undefined, 'hold'],
    ['workflow.changed', undefined, 'release'],
    ['workflow.stopping', undefined, 'cancel'],
    ['workflow.cancelled', undefined],
  ]);
});

it('a filter by batch hears the batch and its members', async () => {
  const user = node.newTenant();
  const held = await hear(user, '?type=batch.*');
  const { id, jobs } = await submitBatch(user, [{ payload: { fails: true } }, {}], { onFailure: 'continue' });
  await held.until(() => held.types.includes('batch.submitted'));
  const listener = await hear(user, `?batch=${id}`);
  const work = task('work', { retry: { maxAttempts: 1 } }, async (input: { fails?: boolean } | null) => {
    if (input?.fails) throw new Error('it fails');
  });
  await user.work([work], { slots: 2 });
  await endedBatch(user, id);
  await listener.until(() => listener.types.includes('batch.failed'));
  const heard = told(listener);
  expect(heard[0]).toEqual(['batch.started', undefined]);
  expect(heard.at(-1)).toEqual(['batch.failed', undefined]);
  const ends = heard.slice(1, -1).map(([type, job]) => `${type} ${job}`);
  const [first, second] = jobs.map((job) => job.id);
  expect(ends.sort()).toEqual(
    [
      `job.failed ${first}`,
      `job.started ${first}`,
      `job.started ${second}`,
      `job.succeeded ${second}`,
    ].sort(),
  );
  await held.until(() => held.types.includes('batch.failed'));
  expect(told(held).map(([type]) => type)).toEqual(['batch.submitted', 'batch.started', 'batch.failed']);
});

it('a workflow that another node has stored is told like one of the leader', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const leader = await nodeForTest({ database });
  await until(() => leader.node.leads());
  const other = await nodeForTest({ database });
  await other.get('GET', '/v1/cluster');
  const listener = await EventListener.open({
    url: other.url,
    apiKey: other.apiKey,
    query: '?type=workflow.*,job.submitted',
  });
  onTestFinished(() => listener.close());
  await listener.until(() => true);
  const { id } = await submitWorkflow(other, { jobs: { a: step('a') } as never });
  await listener.until(() => listener.types.includes('job.submitted'));
  expect(listener.heard.slice(1).map(({ event, data }) => [event, data.workflow])).toEqual([
    ['workflow.submitted', id],
    ['job.submitted', id],
  ]);
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** A tenant whose steps fail as long as their names are in the set. */
async function failing(...names: string[]): Promise<{ user: TestTenant; ran: string[]; bad: Set<string> }> {
  const user = node.newTenant();
  const ran: string[] = [];
  const bad = new Set(names);
  const note = task('note', {}, async ({ name }: { name: string }) => {
    ran.push(name);
    if (bad.has(name)) throw new Error(name);
    return { name, run: ran.length };
  });
  await user.work([note], { slots: 10 });
  return { user, ran, bad };
}

const CHAIN = {
  a: step('a'),
  b: step('b', ['a']),
  c: step('c', ['b']),
  alert: step('alert', ['c'], { runIf: 'any-failed' }),
};

const retry = (user: TestTenant, { id }: Workflow, body: object = {}) =>
  user.ask<Workflow>('POST', `/v1/workflows/${id}/retry`, { body });

it('a retry runs what failed and what was skipped because of it, and nothing else', async () => {
  const { user, ran, bad } = await failing('b');
  const first = await workflowEnd(user, await submitWorkflow(user, { jobs: CHAIN, onFailure: 'continue' }));
  expect(statesOf(first)).toEqual({ a: 'succeeded', b: 'failed', c: 'skipped', alert: 'succeeded' });
  bad.clear();
  const { status, body } = await retry(user, first);
  expect([status, body.state, body.run]).toEqual([200, 'running', 2]);
  const second = await workflowEnd(user, first);
  expect(second.state).toBe('succeeded');
  expect(statesOf(second)).toMatchObject({ a: 'succeeded', b: 'succeeded', c: 'succeeded' });
  expect(ran.filter((name) => name === 'a')).toHaveLength(1);
  expect(ran.slice(-2)).toEqual(['b', 'c']);
  expect((await retry(user, second)).status).toBe(409);
});

it('a retry of a stopped workflow decides about everything again that was skipped', async () => {
  const { user, bad } = await failing('b');
  const jobs = { ...CHAIN, other: step('other', [], { delay: '1h' }) };
  const first = await workflowEnd(user, await submitWorkflow(user, { jobs, onFailure: 'stop' }));
  expect(statesOf(first)).toMatchObject({ b: 'failed', c: 'skipped', alert: 'skipped', other: 'skipped' });
  bad.clear();
  await retry(user, first);
  const second = await workflowEnd(user, first);
  expect(second).toMatchObject({ state: 'succeeded', stopping: null });
  expect(statesOf(second)).toEqual({
    ...{ a: 'succeeded', b: 'succeeded', c: 'succeeded', alert: 'skipped', other: 'succeeded' },
  });
});

it('a retry of one failed step by its job continues the workflow', async () => {
  const { user, ran, bad } = await failing('b');
  const first = await workflowEnd(user, await submitWorkflow(user, { jobs: CHAIN, onFailure: 'continue' }));
  bad.clear();
  const job = await user.get<{ state: string }>('POST', `/v1/jobs/${first.jobs.b!.id}/retry`);
  expect(['pending', 'running', 'succeeded']).toContain(job.state);
  expect((await workflowEnd(user, first)).state).toBe('succeeded');
  expect(ran.slice(-2)).toEqual(['b', 'c']);
  const many = await user.get<{ changed: number }>('POST', '/v1/jobs/redrive', {
    body: { filter: { state: 'failed' } },
  });
  expect(many.changed).toBe(0);
});

it('with `from`, a step and everything behind it run again, with new results', async () => {
  const { user, ran } = await failing();
  const jobs = {
    a: step('a'),
    b: step('b', ['a']),
    c: step('c', ['b'], { payload: { name: 'c', of: { $from: 'b.result.run' } } }),
    other: step('other', ['a']),
  };
  const first = await workflowEnd(user, await submitWorkflow(user, { jobs }));
  const before = ran.length;
  expect((await retry(user, first, { from: 'b' })).status).toBe(200);
  const second = await workflowEnd(user, first);
  expect(second).toMatchObject({ state: 'succeeded', run: 2 });
  expect(ran.slice(before)).toEqual(['b', 'c']);
  expect((await user.job(first.jobs.c!.id)).payload).toEqual({ name: 'c', of: before + 1 });
  expect((await retry(user, first, { from: 'nobody' })).status).toBe(422);
});

it('at-most-once steps that have run are not run again', async () => {
  const { user } = await failing('a');
  const jobs = { a: { task: 'note', payload: { name: 'a' }, delivery: 'at-most-once' } };
  const first = await workflowEnd(user, await submitWorkflow(user, { jobs: jobs as never }));
  const { status, body } = await retry(user, first);
  expect([status, (body as unknown as { code: string }).code]).toEqual([409, 'AT_MOST_ONCE']);
});

it('a step that runs again gets the results of those before it', async () => {
  const { user, bad } = await failing('b');
  const jobs = {
    a: step('a'),
    b: step('b', ['a'], { payload: { name: 'b', of: { $from: 'a.result.name' } }, delay: '1ms' }),
  };
  const first = await workflowEnd(user, await submitWorkflow(user, { jobs }));
  expect(statesOf(first)).toEqual({ a: 'succeeded', b: 'failed' });
  bad.clear();
  await user.get('POST', `/v1/jobs/${first.jobs.b!.id}/retry`);
  expect((await workflowEnd(user, first)).state).toBe('succeeded');
  expect((await user.job(first.jobs.b!.id)).payload).toEqual({ name: 'b', of: 'a' });
});

it('a step that cannot be resolved fails again', async () => {
  const { user } = await failing();
  const b = step('b', ['a'], { payload: { name: { $from: 'a.result.nothing' } } });
  const first = await workflowEnd(user, await submitWorkflow(user, { jobs: { a: step('a'), b } }));
  await retry(user, first);
  expect(statesOf(await workflowEnd(user, first))).toEqual({ a: 'succeeded', b: 'failed' });
  expect((await user.job(first.jobs.b!.id)).error).toMatchObject({ code: 'MISSING_PATH' });
});

it('a wait that begins again ends at once if its event has come', async () => {
  const { user } = await failing();
  const jobs = { paid: { wait: { event: 'paid' } }, ship: step('ship', ['paid']) };
  const submitted = await submitWorkflow(user, { jobs });
  await user.get('POST', `/v1/workflows/${submitted.id}/events`, { body: { event: 'paid', payload: 42 } });
  const first = await workflowEnd(user, submitted);
  expect((await retry(user, first, { from: 'paid' })).status).toBe(200);
  expect(await workflowEnd(user, first)).toMatchObject({ state: 'succeeded', run: 2 });
  expect((await user.job(first.jobs.paid!.id)).result).toBe(42);
});

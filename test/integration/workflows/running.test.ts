import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { Page, Why } from '../../../src/core/wire.js';
import type { ListedWorkflow, Workflow } from '../../../src/core/workflow.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { notingTask, statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

async function tenantWithWorker(): Promise<{ user: TestTenant; ran: string[] }> {
  const user = node.newTenant();
  const ran: string[] = [];
  await user.work([notingTask(ran)], { slots: 10 });
  return { user, ran };
}

const DIAMOND = { a: step('a'), b: step('b', ['a']), c: step('c', ['a']), d: step('d', ['b', 'c']) };

describe('a workflow', () => {
  it('runs every step after its parents, each once, and ends when the last one has', async () => {
    const { user, ran } = await tenantWithWorker();
    const submitted = await submitWorkflow(user, { jobs: DIAMOND });
    expect(submitted).toMatchObject({ state: 'running', progress: { steps: 4, ended: 0, failed: 0 } });
    expect(statesOf(submitted)).toEqual({ a: 'pending', b: 'blocked', c: 'blocked', d: 'blocked' });
    const ended = await workflowEnd(user, submitted);
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 4, ended: 4, failed: 0 } });
    expect(new Set(Object.values(statesOf(ended)))).toEqual(new Set(['succeeded']));
    expect(ran[0]).toBe('a');
    expect([...ran].sort()).toEqual(['a', 'b', 'c', 'd']);
    expect(ran[3]).toBe('d');
  });

  it('shows from each job its workflow, parents, children and ancestors, and lists its jobs', async () => {
    const { user } = await tenantWithWorker();
    const { id, jobs } = await workflowEnd(user, await submitWorkflow(user, { jobs: DIAMOND }));
    const ids = (...names: string[]) => names.map((name) => jobs[name]!.id).sort();
    const job = await user.job(jobs.d!.id);
    expect(job).toMatchObject({ workflow: id, dependents: [] });
    expect([...job.dependsOn].sort()).toEqual(ids('b', 'c'));
    expect([...job.ancestors].sort()).toEqual(ids('a', 'b', 'c'));
    expect([...(await user.job(jobs.a!.id)).dependents].sort()).toEqual(ids('b', 'c'));
    const { data } = await user.get<Page<Job>>('GET', `/v1/jobs?workflow=${id}`);
    expect(data.map((each) => each.id).sort()).toEqual(ids('a', 'b', 'c', 'd'));
    const listed = await user.get<Page<ListedWorkflow>>('GET', '/v1/workflows?state=succeeded');
    expect(listed.data.map((each) => each.id)).toEqual([id]);
  });

  it('says of a blocked job which steps it waits for', async () => {
    const user = node.newTenant();
    const { id, jobs } = await submitWorkflow(user, { jobs: DIAMOND });
    expect((await user.job(jobs.d!.id)).state).toBe('blocked');
    const why = await user.get<Why>('GET', `/v1/jobs/${jobs.d!.id}/why`);
    expect(why).toMatchObject({ state: 'blocked', gate: 'parents', figures: { parents: 2, parentsLeft: 2 } });
    expect(why.detail).toContain('b, c');
    const blocked = await user.get<Page<Job>>('GET', `/v1/jobs?workflow=${id}&state=blocked`);
    expect(blocked.data).toHaveLength(3);
  });

  it('with the same key is the same workflow', async () => {
    const user = node.newTenant();
    const body = { name: 'test', key: 'order-1', jobs: DIAMOND };
    const first = await user.ask<Workflow>('POST', '/v1/workflows', { body });
    const second = await user.ask<Workflow>('POST', '/v1/workflows', { body });
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.body.id).toBe(first.body.id);
    expect(second.body.jobs).toEqual(first.body.jobs);
  });

  it('is stored whole or not at all', async () => {
    const user = node.newTenant();
    const wrong = await user.ask<{ errors: { pointer: string }[] }>('POST', '/v1/workflows', {
      body: { name: 'test', jobs: { a: step('a', ['b']), b: step('b', ['a']) } },
    });
    expect(wrong.status).toBe(422);
    expect(wrong.body.errors[0]!.pointer).toMatch(/^\/jobs\/[ab]\/after\/0$/);
    expect((await user.get<Page<Job>>('GET', '/v1/jobs')).data).toEqual([]);
  });
});

describe('a step that fails', () => {
  const jobs = {
    a: step('a', [], { payload: { name: 'a', fails: true } }),
    b: step('b', ['a']),
    alert: step('alert', ['b'], { runIf: 'any-failed' }),
    always: step('always', ['a'], { runIf: 'all-finished' }),
    other: step('other'),
    after: step('after', ['other']),
  };

  it('with `continue` leaves its dependents to their runIf', async () => {
    const { user, ran } = await tenantWithWorker();
    const ended = await workflowEnd(user, await submitWorkflow(user, { jobs, onFailure: 'continue' }));
    expect(ended.state).toBe('failed');
    expect(statesOf(ended)).toEqual({
      ...{ a: 'failed', b: 'skipped', alert: 'succeeded', always: 'succeeded' },
      ...{ other: 'succeeded', after: 'succeeded' },
    });
    expect(ran).not.toContain('b');
  });

  it('with `stop` has everything skipped that has not started', async () => {
    const { user, ran } = await tenantWithWorker();
    const late = { ...jobs, after: step('after', ['other'], { delay: '1h' }) };
    const ended = await workflowEnd(user, await submitWorkflow(user, { jobs: late, onFailure: 'stop' }));
    expect(ended).toMatchObject({ state: 'failed', stopping: 'failure' });
    expect(statesOf(ended)).toMatchObject({ a: 'failed', b: 'skipped', alert: 'skipped', after: 'skipped' });
    expect(ran).not.toContain('alert');
  });
});

it('a cancelled workflow skips what is blocked, cancels what waits, and ends', async () => {
  const user = node.newTenant();
  const { id } = await submitWorkflow(user, { jobs: DIAMOND });
  await user.get('POST', `/v1/workflows/${id}/cancel`);
  const ended = await workflowEnd(user, { id });
  expect(ended.state).toBe('cancelled');
  expect(statesOf(ended)).toEqual({ a: 'cancelled', b: 'skipped', c: 'skipped', d: 'skipped' });
  expect((await user.ask('POST', `/v1/workflows/${id}/cancel`)).status).toBe(409);
});

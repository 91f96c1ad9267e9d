import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { Why } from '../../../src/core/wire.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { until } from '../store/test-shard.js';
import { statesOf, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start({ settings: { maxPayload: 65_536 } });
});
afterAll(() => node.stop());

/** Answers with what it was given. */
async function echoing(): Promise<TestTenant> {
  const user = node.newTenant();
  await user.work([task('echo', {}, async (input: unknown) => input)], { slots: 20 });
  return user;
}

const echo = (payload: unknown, ...after: string[]) => ({
  task: 'echo',
  payload,
  after,
  retry: { maxAttempts: 1 },
});

describe('a payload with references', () => {
  it('gets what the steps before returned, to the letter', async () => {
    const user = await echoing();
    const body = `{"name":"test","jobs":{
      "a":{"task":"echo","payload":{"pages":[1,{"big":1.5}]}},
      "b":{"task":"echo","after":["a"],"payload":{"page":{"$from":"a.result.pages.1"},"all":{"$from":"a.result"}}}}}`;
    const submitted = await user.get<{ id: string; jobs: Record<string, { id: string }> }>(
      'POST',
      '/v1/workflows',
      { body, headers: { 'content-type': 'application/json' } },
    );
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    const job = await user.job(submitted.jobs.b!.id);
    expect(job.payload).toEqual({
      page: { big: 1.5 },
      all: { pages: [1, { big: 1.5 }] },
    });
  });

  it('fails its step with the reason where a path is missing, without an attempt', async () => {
    const user = await echoing();
    const submitted = await submitWorkflow(user, {
      jobs: { a: echo({ x: 1 }), b: echo({ y: { $from: 'a.result.nothing' } }, 'a') } as never,
    });
    const ended = await workflowEnd(user, submitted);
    expect(statesOf(ended)).toEqual({ a: 'succeeded', b: 'failed' });
    const job = await user.job(submitted.jobs.b!.id);
    expect(job).toMatchObject({ attempt: 0, error: { code: 'MISSING_PATH' } });
    expect(job.error!.message).toContain('a.result.nothing');
  });

  it('must keep to the limit once it is resolved', async () => {
    const user = await echoing();
    const large = { $from: 'a.result' };
    const submitted = await submitWorkflow(user, {
      jobs: { a: echo('x'.repeat(40_000)), b: echo([large, large], 'a') } as never,
    });
    await workflowEnd(user, submitted);
    expect((await user.job(submitted.jobs.b!.id)).error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  });

  it('counts with its size as soon as it is resolved, also while the step is on hold', async () => {
    const user = await echoing();
    const held = { ...echo({ $from: 'a.result' }, 'a'), hold: true };
    const jobs = { a: echo('x'.repeat(40_000)), b: held };
    const { b } = (await submitWorkflow(user, { jobs: jobs as never })).jobs;
    await until(async () => (await user.job(b!.id)).state !== 'blocked');
    const { rows } = await withClient(node.database.url, (client) =>
      client.query('SELECT size_kib FROM punctual.later WHERE id = $1', [b!.id]),
    );
    expect(rows).toEqual([{ size_kib: 39 }]);
  });

  it('is resolved in bounded portions for many children of a large result', async () => {
    const user = await echoing();
    const jobs: Record<string, object> = { a: echo('x'.repeat(60_000)) };
    for (let i = 0; i < 200; i++) jobs[`b${i}`] = echo({ $from: 'a.result' }, 'a');
    const ended = await workflowEnd(user, await submitWorkflow(user, { jobs: jobs as never }));
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 201, ended: 201 } });
  }, 30_000);

  it('is resolved in bounded portions for children of several steps that end at once', async () => {
    const user = await echoing();
    const go = { wait: { event: 'go' } };
    const jobs: Record<string, object> = { a: go, b: go, before: echo(1) };
    for (let i = 0; i < 100; i++) jobs[`b${i}`] = echo({ $from: 'a.result' }, 'a', 'b');
    for (let i = 0; i < 100; i++) jobs[`c${i}`] = echo({ $from: 'a.result' }, 'a', 'before');
    const submitted = await submitWorkflow(user, { jobs: jobs as never });
    await user.get('GET', `/v1/jobs/${submitted.jobs.before!.id}?wait=20s`);
    const body = { event: 'go', payload: 'x'.repeat(60_000) };
    await user.get('POST', `/v1/workflows/${submitted.id}/events`, { body });
    const ended = await workflowEnd(user, submitted);
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 203, ended: 203 } });
  }, 30_000);
});

describe('a step that waits', () => {
  it('for an event ends with its payload, takes no worker, and says what it waits for', async () => {
    const user = await echoing();
    const submitted = await submitWorkflow(user, {
      jobs: { paid: { wait: { event: 'paid' } }, ship: echo({ $from: 'paid.result' }, 'paid') } as never,
    });
    const why = await user.get<Why>('GET', `/v1/jobs/${submitted.jobs.paid!.id}/why`);
    expect(why).toMatchObject({ state: 'blocked', gate: 'event', figures: { event: 'paid' } });
    const events = `/v1/workflows/${submitted.id}/events`;
    await user.get('POST', events, { body: { event: 'paid', payload: { amount: 42 } } });
    const ended = await workflowEnd(user, submitted);
    expect(ended.state).toBe('succeeded');
    expect((await user.job(submitted.jobs.ship!.id)).payload).toEqual({ amount: 42 });
    expect((await user.ask('POST', events, { body: { event: 'paid' } })).status).toBe(409);
  });

  it('is served by an event that came before it was reached, of which the first counts', async () => {
    const user = await echoing();
    const submitted = await submitWorkflow(user, {
      jobs: { a: { ...echo(1), hold: true }, paid: { wait: { event: 'paid' }, after: ['a'] } } as never,
    });
    const events = `/v1/workflows/${submitted.id}/events`;
    await user.get('POST', events, { body: { event: 'paid', payload: 'first' } });
    await user.get('POST', events, { body: { event: 'paid', payload: 'second' } });
    await user.get('POST', `/v1/jobs/${submitted.jobs.a!.id}/release`);
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    expect((await user.job(submitted.jobs.paid!.id)).result).toBe('first');
  });

  it('for a time ends then; for an event that does not come in time it fails', async () => {
    const user = await echoing();
    const submitted = await submitWorkflow(user, {
      jobs: {
        time: { wait: '50ms' },
        event: { wait: { event: 'never', timeout: '50ms' }, after: ['time'] },
        after: { ...echo(1, 'event'), runIf: 'any-failed' },
      } as never,
    });
    const ended = await workflowEnd(user, submitted);
    expect(statesOf(ended)).toEqual({ time: 'succeeded', event: 'failed', after: 'succeeded' });
    expect((await user.job(submitted.jobs.event!.id)).error).toMatchObject({ code: 'EVENT_TIMEOUT' });
  });

  it('ends in its time, however many there are', async () => {
    const user = await echoing();
    const jobs: Record<string, object> = {};
    for (let i = 0; i < 1_100; i++) jobs[`w${i}`] = { wait: '50ms' };
    const ended = await workflowEnd(user, await submitWorkflow(user, { jobs: jobs as never }));
    expect(ended).toMatchObject({ state: 'succeeded', progress: { ended: 1_100 } });
  });

  it('and its workflow are waited for by a cancel no longer', async () => {
    const user = await echoing();
    const submitted = await submitWorkflow(user, { jobs: { w: { wait: '2d' }, b: echo(1, 'w') } as never });
    await until(async () => (await user.job(submitted.jobs.w!.id)).state === 'blocked');
    await user.get('POST', `/v1/workflows/${submitted.id}/cancel`);
    expect(statesOf(await workflowEnd(user, submitted))).toEqual({ w: 'skipped', b: 'skipped' });
  });
});

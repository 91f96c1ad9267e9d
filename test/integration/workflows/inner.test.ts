import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { Why } from '../../../src/core/wire.js';
import { workflow as define } from '../../../src/core/workflow/workflow-builder.js';
import type { Workflow, WorkflowSteps } from '../../../src/core/workflow.js';
import { Door } from '../../happening.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { until } from '../store/test-shard.js';
import { statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** A tenant whose steps note that they ran, and fail as long as their names are in the set. */
async function noting(
  ...names: string[]
): Promise<{ user: TestTenant; ran: string[]; bad: Set<string>; door: Door }> {
  const user = node.newTenant();
  const ran: string[] = [];
  const bad = new Set(names);
  const door = new Door();
  const note = task('note', {}, async ({ name }: { name: string }, { signal }) => {
    ran.push(name);
    if (name.startsWith('slow')) {
      const stopped = new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
      await Promise.race([door.opened, stopped]);
    }
    if (bad.has(name)) throw new Error(`${name} fails`);
    return { name };
  });
  await user.work([note], { slots: 10 });
  return { user, ran, bad, door };
}

const inner = (jobs: object, after: string[] = [], more: object = {}, place: object = {}) => ({
  ...{ workflow: { jobs, ...more }, after },
  ...place,
});

const read = (user: TestTenant, id: string) => user.get<Workflow>('GET', `/v1/workflows/${id}`);

/** The workflow that a step has started. */
async function startedBy(user: TestTenant, { id }: { readonly id: string }, name: string): Promise<string> {
  await until(async () => (await read(user, id)).jobs[name]!.workflow !== null);
  return (await read(user, id)).jobs[name]!.workflow!;
}

function submit(user: TestTenant, jobs: object, more: object = {}): Promise<Workflow> {
  return submitWorkflow(user, { jobs: jobs as WorkflowSteps, ...more });
}

describe('a workflow as a step of another', () => {
  it('starts when the step is released, and the step ends with it; both show each other', async () => {
    const { user, ran } = await noting();
    const submitted = await submit(user, {
      a: step('a'),
      sub: inner({ b: step('b'), c: step('c', ['b']) }, ['a'], { name: 'part' }),
      d: step('d', ['sub'], { payload: { name: 'd', of: { $from: 'sub.result.workflow' } } }),
    });
    const ended = await workflowEnd(user, submitted);
    expect(ended).toMatchObject({ state: 'succeeded', parent: null });
    expect(ran).toEqual(['a', 'b', 'c', 'd']);
    const id = ended.jobs.sub!.workflow!;
    const part = await read(user, id);
    expect(part).toMatchObject({ name: 'part', state: 'succeeded' });
    expect(part.parent).toEqual({ workflow: submitted.id, job: ended.jobs.sub!.id });
    expect((await user.job(ended.jobs.sub!.id)).result).toEqual({ workflow: id, state: 'succeeded' });
    expect((await user.job(ended.jobs.d!.id)).payload).toEqual({ name: 'd', of: id });
  });

  it('may have others inside it, three levels down, and takes no worker', async () => {
    const { user, ran } = await noting();
    const deepest = inner({ c: step('c') });
    const submitted = await submit(user, {
      a: inner({ b: inner({ in: deepest, after: step('after', ['in']) }) }),
      end: step('end', ['a']),
    });
    const ended = await workflowEnd(user, submitted);
    expect(ended.state).toBe('succeeded');
    expect(ran).toEqual(['c', 'after', 'end']);
    let depth = 0;
    for (let id: string | undefined = ended.jobs.a!.workflow!; id !== undefined; depth += 1) {
      const { jobs, name } = await read(user, id);
      expect(name).toBe('test');
      id = Object.values(jobs).find(({ workflow }) => workflow !== null)?.workflow ?? undefined;
    }
    expect(depth).toBe(3);
  });

  it('that fails fails its step; a retry of the outer one runs again what failed inside', async () => {
    const { user, ran, bad } = await noting('b');
    const submitted = await submit(user, {
      sub: inner({ a: step('a'), b: step('b', ['a']) }),
      end: step('end', ['sub']),
    });
    const first = await workflowEnd(user, submitted);
    expect(statesOf(first)).toEqual({ sub: 'failed', end: 'skipped' });
    const { error } = await user.job(first.jobs.sub!.id);
    expect(error).toMatchObject({ code: 'WORKFLOW_UNSUCCESSFUL' });
    expect(error!.message).toContain(first.jobs.sub!.workflow!);
    bad.clear();
    await user.get('POST', `/v1/workflows/${submitted.id}/retry`);
    const second = await workflowEnd(user, submitted);
    expect(second.state).toBe('succeeded');
    expect(second.jobs.sub!.workflow).toBe(first.jobs.sub!.workflow);
    expect(ran).toEqual(['a', 'b', 'b', 'end']);
    expect(await read(user, second.jobs.sub!.workflow!)).toMatchObject({ state: 'succeeded', run: 2 });
  });

  it('is started anew by a rerun from its step', async () => {
    const { user, ran } = await noting();
    const submitted = await submit(user, { sub: inner({ a: step('a') }), end: step('end', ['sub']) });
    const first = await workflowEnd(user, submitted);
    await user.get('POST', `/v1/workflows/${submitted.id}/retry`, { body: { from: 'sub' } });
    const second = await workflowEnd(user, submitted);
    expect(second.state).toBe('succeeded');
    expect(second.jobs.sub!.workflow).not.toBe(first.jobs.sub!.workflow);
    expect(ran).toEqual(['a', 'end', 'a', 'end']);
  });

  it('is cancelled with the outer one, however deep', async () => {
    const { user, ran } = await noting();
    const submitted = await submit(user, {
      sub: inner({ in: inner({ slow: step('slow'), never: step('never', ['slow']) }) }),
      end: step('end', ['sub']),
    });
    const middle = await startedBy(user, submitted, 'sub');
    const deepest = await startedBy(user, { id: middle }, 'in');
    await until(async () => ran.includes('slow'));
    await user.get('POST', `/v1/workflows/${submitted.id}/cancel`);
    const ended = await workflowEnd(user, submitted);
    expect(ended.state).toBe('cancelled');
    expect(statesOf(ended)).toEqual({ sub: 'failed', end: 'skipped' });
    expect((await read(user, middle)).state).toBe('cancelled');
    expect(await read(user, deepest)).toMatchObject({ state: 'cancelled' });
    expect(ran).toEqual(['slow']);
  });

  it('finishes when a failure stops the outer one, unless running steps are cancelled', async () => {
    for (const running of ['finish', 'cancel'] as const) {
      const { user, door, ran } = await noting('bad');
      const jobs = {
        sub: inner({ slow: step('slow') }),
        go: { wait: { event: 'go' } },
        bad: step('bad', ['go']),
      };
      const submitted = await submit(user, jobs, { onFailure: 'stop', running });
      const id = await startedBy(user, submitted, 'sub');
      await until(async () => ran.includes('slow'));
      await user.get('POST', `/v1/workflows/${submitted.id}/events`, { body: { event: 'go' } });
      await until(async () => (await read(user, submitted.id)).stopping !== null);
      if (running === 'finish') door.open();
      const ended = await workflowEnd(user, submitted);
      expect(ended.state).toBe('failed');
      expect((await read(user, id)).state).toBe(running === 'finish' ? 'succeeded' : 'cancelled');
    }
  });

  it('is cancelled when the job of its step is', async () => {
    const { user, ran } = await noting();
    const submitted = await submit(user, { sub: inner({ slow: step('slow') }), end: step('end', ['sub']) });
    const id = await startedBy(user, submitted, 'sub');
    await until(async () => ran.includes('slow'));
    await user.get('POST', `/v1/jobs/${submitted.jobs.sub!.id}/cancel`);
    expect(statesOf(await workflowEnd(user, submitted))).toEqual({ sub: 'cancelled', end: 'skipped' });
    expect((await workflowEnd(user, { id })).state).toBe('cancelled');
  });

  it('does not end a step that has started another one since', async () => {
    const { user, bad, ran, door } = await noting('a');
    const submitted = await submit(user, {
      sub: inner({ a: step('a'), slow: step('slow', ['a']) }),
      end: step('end', ['sub']),
    });
    const first = (await workflowEnd(user, submitted)).jobs.sub!.workflow!;
    bad.clear();
    await user.get('POST', `/v1/workflows/${submitted.id}/retry`, { body: { from: 'sub' } });
    await until(async () => ran.filter((name) => name === 'slow').length === 1);
    // Somebody runs the old one again, and it ends before the new one.
    await user.get('POST', `/v1/workflows/${first}/retry`);
    await until(async () => ran.filter((name) => name === 'slow').length === 2);
    const second = (await read(user, submitted.id)).jobs.sub!.workflow!;
    await user.get('POST', `/v1/workflows/${first}/cancel`);
    expect((await workflowEnd(user, { id: first })).state).toBe('cancelled');
    expect((await read(user, submitted.id)).jobs.sub).toMatchObject({ state: 'blocked', workflow: second });
    door.open();
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    expect((await user.job(submitted.jobs.sub!.id)).result).toMatchObject({ workflow: second });
  });

  it('that is being cancelled is not waited for by a step that runs again', async () => {
    const user = node.newTenant();
    const doors = [new Door(), new Door()];
    let starts = 0;
    // It takes its time to stop.
    const work = task('note', {}, async () => doors[starts++]!.opened);
    await user.work([work], { stopGraceMs: 10_000 });
    const submitted = await submit(user, { sub: inner({ a: step('a') }) });
    const first = await startedBy(user, submitted, 'sub');
    await until(async () => starts === 1);
    await user.get('POST', `/v1/jobs/${submitted.jobs.sub!.id}/cancel`);
    await workflowEnd(user, submitted);
    await user.get('POST', `/v1/workflows/${submitted.id}/retry`);
    await until(async () => starts === 2);
    for (const door of doors) door.open();
    const ended = await workflowEnd(user, submitted);
    expect(ended.state).toBe('succeeded');
    expect(ended.jobs.sub!.workflow).not.toBe(first);
  });

  it('holds up nobody else, however many there are', async () => {
    const [{ user }, { user: other }] = [await noting(), await noting()];
    const crowd = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`w${i}`, inner({ a: step('a') })]),
    );
    const submitted = await submit(user, crowd);
    const chain = await workflowEnd(other, await submit(other, { a: step('a'), b: step('b', ['a']) }));
    expect(chain.state).toBe('succeeded');
    const { progress } = await read(user, submitted.id);
    expect(progress.ended).toBeLessThan(100);
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
  });

  it('is what the step waits for, says `why`', async () => {
    const { user, door } = await noting();
    const submitted = await submit(user, { sub: inner({ slow: step('slow') }) });
    const id = await startedBy(user, submitted, 'sub');
    const why = await user.get<Why>('GET', `/v1/jobs/${submitted.jobs.sub!.id}/why`);
    expect(why).toMatchObject({ state: 'blocked', gate: 'workflow', figures: { innerWorkflow: id } });
    expect(why.detail).toContain(id);
    door.open();
    await workflowEnd(user, submitted);
  });

  it('may be added by a running step, and may be one itself whose steps add others', async () => {
    const user = node.newTenant();
    const ran: string[] = [];
    const note = task('note', {}, async ({ name }: { name: string }) => void ran.push(name));
    const add = task('add', {}, async ({ name }: { name: string }, ctx) => {
      ran.push(name);
      await ctx.spawn((w) => {
        if (name === 'outer')
          w.workflow(
            define('part', (v) => void v.run(add, { name: 'inner' })),
            undefined,
            { name: 'sub' },
          );
        else w.run(note, { name: 'last' }, { name: 'last' });
      });
    });
    await user.work([note, add]);
    const jobs = { a: { task: 'add', payload: { name: 'outer' } }, end: step('end', ['a']) };
    expect((await workflowEnd(user, await submit(user, jobs))).state).toBe('succeeded');
    expect(ran).toEqual(['outer', 'inner', 'last', 'end']);
  });

  it('is checked when the outer one is submitted', async () => {
    const user = node.newTenant();
    const cases: [object, string][] = [
      [inner({ b: step('b', ['nobody']) }), '/jobs/sub/workflow/jobs/b/after/0'],
      [inner({}), '/jobs/sub/workflow/jobs'],
      [inner({ b: step('b') }, [], { key: 'k' }), '/jobs/sub/workflow/key'],
      [{ ...inner({ b: step('b') }), task: 'note' }, '/jobs/sub/task'],
      [
        inner({ b: { task: 'note', payload: { $from: 'x.result' } } }),
        '/jobs/sub/workflow/jobs/b/payload/$from',
      ],
    ];
    for (const [sub, pointer] of cases) {
      const { status, body } = await user.ask<{ errors: { pointer: string }[] }>('POST', '/v1/workflows', {
        body: { name: 'test', jobs: { sub } },
      });
      expect([status, body.errors[0]!.pointer]).toEqual([422, pointer]);
    }
    let deep: object = step('x');
    for (let i = 0; i < 8; i++) deep = inner({ in: deep });
    const { status } = await user.ask('POST', '/v1/workflows', { body: { name: 'test', jobs: { deep } } });
    expect(status).toBe(422);
  });
});

describe('the limits of a tenant', () => {
  const wide = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`s${i}`, { task: 'note' }]));

  it('hold for the steps of a workflow together with those inside', async () => {
    const user = node.newTenant();
    const [a, b, c, d] = [1, 2, 3, 4].map(() => inner(wide(2_000)));
    const jobs = { a, b, c, d, e: inner({ f: inner(wide(2_000)) }) };
    const refused = { status: 422, body: { errors: [{ pointer: '/jobs' }] } };
    expect(await user.ask('POST', '/v1/workflows', { body: { name: 'test', jobs } })).toMatchObject(refused);
    expect(await user.ask('PUT', '/v1/workflow-definitions/test', { body: { jobs } })).toMatchObject(refused);
  });

  it('hold for what is added together with what is inside already', async () => {
    const user = node.newTenant();
    const statuses: number[] = [];
    const add = task('add', {}, async (_: unknown, { jobId, fence }) => {
      for (const count of [2_500, 1_900]) {
        const body = { by: { jobId, fence }, jobs: { more: inner(wide(count), ['never']) } };
        statuses.push((await user.ask('POST', `/v1/workflows/${id}/jobs`, { body })).status);
      }
    });
    const never = { wait: { event: 'never', timeout: '1d' } };
    const jobs = { a: { task: 'add', after: ['go'] }, go: { wait: { event: 'go', timeout: '1d' } }, never };
    const { id } = await submit(user, {
      ...jobs,
      ...Object.fromEntries([1, 2, 3, 4].map((i) => [`sub${i}`, inner(wide(2_000), ['never'])])),
    });
    await user.work([add]);
    await user.get('POST', `/v1/workflows/${id}/events`, { body: { event: 'go' } });
    await until(() => statuses.length === 2);
    expect(statuses).toEqual([422, 201]);
    await user.get('POST', `/v1/workflows/${id}/cancel`);
  });

  it.each([
    ['liveJobs', { a: step('a'), b: step('b'), c: step('c') }],
    ['laterJobs', { slow: step('slow'), b: step('b', ['slow']), c: step('c', ['slow']) }],
  ])(
    '%s: a step whose workflow has no room fails, and is started by a retry when there is room',
    async (quota, jobs) => {
      const { user, door } = await noting();
      await node.get('POST', '/v1/tenants', { body: { id: user.tenant, quotas: { [quota]: 2 } } });
      const submitted = await submit(user, { sub: inner(jobs) });
      const failed = await workflowEnd(user, submitted);
      expect(statesOf(failed)).toEqual({ sub: 'failed' });
      const job = await user.job(failed.jobs.sub!.id);
      expect(job.error?.code).toBe('QUOTA_EXCEEDED');
      await node.get('PATCH', `/v1/tenants/${user.tenant}`, { body: { quotas: { [quota]: 4 } } });
      await user.get('POST', `/v1/workflows/${submitted.id}/retry`);
      door.open();
      expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    },
  );
});

describe('a workflow on hold', () => {
  const steer = (user: TestTenant, { id }: { readonly id: string }, verb: 'hold' | 'release') =>
    user.get<Workflow>('POST', `/v1/workflows/${id}/${verb}`);

  it('holds the workflows that are its steps, and releases them', async () => {
    const { user, ran, door } = await noting();
    const submitted = await submit(user, { sub: inner({ slow: step('slow'), b: step('b', ['slow']) }) });
    const id = await startedBy(user, submitted, 'sub');
    await until(async () => ran.includes('slow'));
    await steer(user, submitted, 'hold');
    await until(async () => (await read(user, id)).held);
    door.open();
    await until(async () => (await read(user, id)).jobs.slow!.state === 'succeeded');
    expect(ran).toEqual(['slow']);
    await steer(user, submitted, 'release');
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    expect(ran).toEqual(['slow', 'b']);
  });

  it('leaves a workflow on hold that somebody has held by itself, before or meanwhile', async () => {
    const { user, ran, door } = await noting();
    const jobs = { slow: step('slow'), b: step('b', ['slow']) };
    const submitted = await submit(user, { first: inner(jobs), second: inner(jobs), third: inner(jobs) });
    const ids = await Promise.all(
      ['first', 'second', 'third'].map((name) => startedBy(user, submitted, name)),
    );
    const [first, second, third] = ids.map((id) => ({ id })) as [
      { id: string },
      { id: string },
      { id: string },
    ];
    await until(async () => ran.length === 3);
    await steer(user, first, 'hold');
    await steer(user, submitted, 'hold');
    await until(async () => (await Promise.all(ids.map((id) => read(user, id)))).every(({ held }) => held));
    await steer(user, second, 'hold');
    const again = await user.ask('POST', `/v1/workflows/${second.id}/hold`);
    expect(again).toMatchObject({ status: 409, body: { code: 'WORKFLOW_HELD' } });
    door.open();
    await steer(user, submitted, 'release');
    await until(async () => (await read(user, third.id)).state === 'succeeded');
    for (const own of [first, second]) {
      expect(await read(user, own.id)).toMatchObject({ held: true, state: 'running' });
      await steer(user, own, 'release');
    }
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
  });

  it('that was stopped by a failure releases the workflows that are its steps, too', async () => {
    const { user, ran, door } = await noting('slow-bad');
    const submitted = await submit(
      user,
      { sub: inner({ slow: step('slow'), b: step('b', ['slow']) }), bad: step('slow-bad') },
      { onFailure: 'stop', running: 'finish' },
    );
    const id = await startedBy(user, submitted, 'sub');
    await until(async () => ran.length === 2);
    await steer(user, submitted, 'hold');
    await until(async () => (await read(user, id)).held);
    door.open();
    await until(async () => (await read(user, submitted.id)).stopping === 'failure');
    await until(async () => (await read(user, id)).jobs.slow!.state === 'succeeded');
    await steer(user, submitted, 'release');
    expect((await workflowEnd(user, submitted)).state).toBe('failed');
    expect((await read(user, id)).state).toBe('succeeded');
  });

  it('holds a workflow that is its step and runs again', async () => {
    const { user, ran, bad, door } = await noting('b');
    const submitted = await submit(user, { sub: inner({ b: step('b') }), slow: step('slow') });
    const id = await startedBy(user, submitted, 'sub');
    await until(async () => (await read(user, submitted.id)).jobs.sub!.state === 'failed');
    await steer(user, submitted, 'hold');
    bad.clear();
    await user.get('POST', `/v1/workflows/${submitted.id}/retry`);
    await until(async () => (await read(user, id)).state === 'running');
    expect(await read(user, id)).toMatchObject({ held: true, jobs: { b: { state: 'blocked' } } });
    await steer(user, submitted, 'release');
    door.open();
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    expect(ran.filter((name) => name === 'b')).toHaveLength(2);
  });

  it('parks what its running steps add', async () => {
    const user = node.newTenant();
    const ran: string[] = [];
    const door = new Door();
    const note = task('note', {}, async ({ name }: { name: string }) => void ran.push(name));
    const add = task('add', {}, async (_: unknown, ctx) => {
      ran.push('add');
      await door.opened;
      await ctx.spawn((w) => {
        w.run(note, { name: 'b' }, { name: 'b' });
        w.workflow(
          define('part', (v) => void v.run(note, { name: 'c' })),
          undefined,
          { name: 'sub' },
        );
      });
    });
    await user.work([note, add]);
    const submitted = await submit(user, { a: { task: 'add' } });
    await until(async () => ran.includes('add'));
    await steer(user, submitted, 'hold');
    door.open();
    await until(async () => (await read(user, submitted.id)).jobs.sub !== undefined);
    const id = await startedBy(user, submitted, 'sub');
    expect((await read(user, id)).held).toBe(true);
    await until(async () => (await read(user, submitted.id)).jobs.a!.state === 'succeeded');
    await until(async () => (await read(user, submitted.id)).jobs.b!.state === 'blocked');
    expect(ran).toEqual(['add']);
    await steer(user, submitted, 'release');
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    expect([...ran].sort()).toEqual(['add', 'b', 'c']);
  });
});

it('the quota for payloads holds inside, and says where', async () => {
  const user = node.newTenant();
  await node.get('POST', '/v1/tenants', { body: { id: user.tenant, quotas: { payloadBytes: 1_000 } } });
  const jobs = { sub: inner({ b: { task: 'b', payload: 'x'.repeat(2_000) } }) };
  const refused = {
    status: 413,
    body: { code: 'PAYLOAD_TOO_LARGE', errors: [{ pointer: '/jobs/sub/workflow/jobs/b/payload' }] },
  };
  const body = { name: 'w', jobs };
  expect(await user.ask('POST', '/v1/workflows', { body })).toMatchObject(refused);
  expect(await user.ask('PUT', '/v1/workflow-definitions/w', { body: { jobs } })).toMatchObject(refused);
});

describe('the steps of a workflow inside another one', () => {
  const inside = (jobs: string) =>
    `"jobs":{"sub":{"workflow":{"jobs":{"mid":{"workflow":{"jobs":${jobs}}}}}}}`;

  it('are refused where a name is given twice', async () => {
    const user = node.newTenant();
    const twice = inside('{"a":{"task":"a"},"b":{"task":"b"},"a":{"task":"c"}}');
    const refused = {
      status: 422,
      body: {
        errors: [{ pointer: '/jobs/sub/workflow/jobs/mid/workflow/jobs/a', detail: 'is given twice' }],
      },
    };
    const submitted = { body: `{"name":"w",${twice}}` };
    expect(await user.ask('POST', '/v1/workflows', submitted)).toMatchObject(refused);
    const put = { body: `{${twice}}` };
    expect(await user.ask('PUT', '/v1/workflow-definitions/w', put)).toMatchObject(refused);
  });

  it('keep their payloads to the letter, submitted and started by name', async () => {
    const { user, ran } = await noting();
    const jobs = inside('{"a":{"task":"note","payload":{"name":"a","n":[1.10,12345678901234567890]}}}');
    const submitted = await user.get<Workflow>('POST', '/v1/workflows', { body: `{"name":"w",${jobs}}` });
    await user.get('PUT', '/v1/workflow-definitions/w', { body: `{${jobs}}` });
    const started = await user.get<Workflow>('POST', '/v1/workflows', { body: { definition: 'w' } });
    for (const each of [submitted, started]) {
      const ended = await workflowEnd(user, each);
      expect(ended.state).toBe('succeeded');
      const sub = await read(user, ended.jobs.sub!.workflow!);
      const mid = await read(user, sub.jobs.mid!.workflow!);
      const response = await fetch(`${node.url}/v1/jobs/${mid.jobs.a!.id}`, {
        headers: { authorization: `Bearer ${node.apiKey}`, 'punctual-tenant': user.tenant },
      });
      expect(await response.text()).toContain('"n":[1.10,12345678901234567890]');
    }
    expect(ran).toEqual(['a', 'a']);
  });
});

describe('a step that names a definition', () => {
  const put = (user: TestTenant, name: string, jobs: object) =>
    user.ask('PUT', `/v1/workflow-definitions/${name}`, { body: { jobs } });
  const greet = { note: step('x', [], { payload: { name: { $from: 'input.who' } } }) };

  it('runs it with an input that may hold results, and with what it was at the submission', async () => {
    const { user, ran } = await noting();
    expect((await put(user, 'greet', greet)).status).toBe(201);
    const submitted = await submit(user, {
      a: step('a', [], { hold: true }),
      sub: { workflow: { definition: 'greet', input: { who: { $from: 'a.result.name' } } }, after: ['a'] },
      own: { workflow: { jobs: greet, input: { who: { $from: 'a.result.name' } } }, after: ['a'] },
    });
    await user.ask('DELETE', '/v1/workflow-definitions/greet');
    await user.get('POST', `/v1/jobs/${submitted.jobs.a!.id}/release`);
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    expect(ran).toEqual(['a', 'a', 'a']);
    const inside = await read(user, await startedBy(user, submitted, 'sub'));
    expect([inside.name, Object.keys(inside.jobs)]).toEqual(['greet', ['note']]);
    const again = await user.get<Workflow>('POST', `/v1/workflows/${submitted.id}/rerun`);
    await user.get('POST', `/v1/jobs/${again.jobs.a!.id}/release`);
    expect((await workflowEnd(user, again)).state).toBe('succeeded');
    expect(ran).toHaveLength(6);
  });

  it('takes the newest version at each start of a definition that names it, also from a schedule', async () => {
    const { user, ran } = await noting();
    await put(user, 'leaf', { one: step('one') });
    await put(user, 'tree', { sub: { workflow: 'leaf' } });
    await put(user, 'leaf', { two: step('two') });
    const started = await user.get<Workflow>('POST', '/v1/workflows', { body: { definition: 'tree' } });
    expect((await workflowEnd(user, started)).state).toBe('succeeded');
    await user.get('POST', '/v1/schedules', { body: { name: 'daily', every: '1d', workflow: 'tree' } });
    await user.get('POST', '/v1/schedules/daily/run');
    await until(async () => ran.length === 2);
    expect(ran).toEqual(['two', 'two']);
  });

  it('is refused with a pointer if there is no such definition, if they are a circle, or if the input lacks something', async () => {
    const { user } = await noting();
    const post = (jobs: object) => user.ask('POST', '/v1/workflows', { body: { name: 'test', jobs } });
    const errorsOf = async (answer: Promise<{ status: number; body: Record<string, unknown> }>) => {
      const { status, body } = await answer;
      return [status, body.errors];
    };
    expect(await errorsOf(post({ a: { workflow: 'nothing' } }))).toEqual([
      422,
      [{ pointer: '/jobs/a/workflow', detail: 'there is no workflow definition nothing' }],
    ]);
    await put(user, 'greet', greet);
    expect(
      await errorsOf(post({ a: { workflow: { definition: 'greet', input: { whom: 1 } } } })),
    ).toMatchObject([422, [{ pointer: '/jobs/a/workflow/input/who' }]]);
    const unknown = { workflow: { definition: 'greet', input: { who: { $from: 'b.result' } } } };
    expect(await errorsOf(post({ a: unknown }))).toMatchObject([
      422,
      [{ pointer: '/jobs/a/workflow/input/who/$from' }],
    ]);
    await put(user, 'x', { a: step('a') });
    await put(user, 'y', { a: { workflow: 'x' } });
    expect(await errorsOf(put(user, 'x', { a: { workflow: 'y' } }))).toEqual([
      422,
      [{ pointer: '/jobs/a/workflow/jobs/a/workflow', detail: 'the definitions are a circle: x > y > x' }],
    ]);
    await user.ask('DELETE', '/v1/workflow-definitions/x');
    expect(await errorsOf(user.ask('POST', '/v1/workflows', { body: { definition: 'y' } }))).toMatchObject([
      422,
      [{ pointer: '/definition' }],
    ]);
  });

  it('fails with a reason if the results do not have what its steps need', async () => {
    const { user } = await noting();
    await put(user, 'greet', greet);
    const submitted = await submit(user, {
      a: step('a'),
      path: { workflow: { definition: 'greet', input: { $from: 'a.result.no' } }, after: ['a'] },
      part: { workflow: { definition: 'greet', input: { whom: { $from: 'a.result.name' } } }, after: ['a'] },
    });
    const ended = await workflowEnd(user, submitted);
    expect(ended.state).toBe('failed');
    const errorOf = async (name: string) => (await user.job(ended.jobs[name]!.id)).error;
    expect(await errorOf('path')).toMatchObject({ code: 'MISSING_PATH' });
    expect(await errorOf('part')).toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('input.who'),
    });
  });

  it('is added by a running step, and built by the SDK with results as its input', async () => {
    const user = node.newTenant();
    const ran: string[] = [];
    const note = task('note', {}, async ({ name }: { name: string }) => {
      ran.push(name);
      return { name };
    });
    const add = task('add', {}, async (_: unknown, ctx) => {
      await ctx.spawn((w) => {
        const first = w.run(note, { name: 'first' }, { name: 'first' });
        w.defined('greet', { who: first.result.name }, { name: 'sub' });
      });
    });
    await user.work([note, add]);
    await put(user, 'greet', greet);
    const submitted = await submit(user, { a: { task: 'add' } });
    expect((await workflowEnd(user, submitted)).state).toBe('succeeded');
    expect(ran).toEqual(['first', 'first']);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KeyLimits } from '../../../src/core/access.js';
import { task } from '../../../src/core/task.js';
import { signAttemptToken } from '../../../src/core/tokens.js';
import type { AddedSteps, Workflow, WorkflowSteps } from '../../../src/core/workflow.js';
import { Door } from '../../happening.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { until } from '../store/test-shard.js';
import { statesOf, step, submitWorkflow, workflowEnd } from './workflow-tester.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** What a step that runs sends to add others. */
interface Attempt {
  readonly jobId: string;
  readonly fence: number;
}

type Steps = Readonly<Record<string, object>>;

/** A tenant with a worker whose steps note that they ran; those of the task `add` do what the test says. */
async function adding(act: (attempt: Attempt, input: { name: string }) => Promise<unknown>) {
  const user = node.newTenant();
  const ran: string[] = [];
  const note = task('note', {}, async (input: { name: string; fails?: boolean; of?: unknown }) => {
    ran.push(input.name);
    if (input.fails) throw new Error(`${input.name} fails`);
    return { name: input.name };
  });
  const add = task('add', {}, async (input: { name: string }, { jobId, fence }) => {
    ran.push(input.name);
    await act({ jobId, fence }, input);
    return { added: true };
  });
  await user.work([note, add], { slots: 10 });
  return { user, ran };
}

function ask(user: TestTenant, workflow: string, by: Attempt, jobs: Steps, more: object = {}) {
  const body = { by, jobs, ...more };
  return user.ask<AddedSteps & { code: string; errors: { pointer: string; detail: string }[] }>(
    ...(['POST', `/v1/workflows/${workflow}/jobs`, { body }] as const),
  );
}

const adder = (more: object = {}) => ({
  ...{ task: 'add', payload: { name: 'a' }, retry: { maxAttempts: 1 } },
  ...more,
});

/** Runs a workflow whose step `a` adds steps. */
async function runWith(
  rest: Steps,
  act: (user: TestTenant, workflow: string, by: Attempt) => Promise<unknown>,
  options: { readonly a?: object; readonly workflow?: object; readonly quotas?: object } = {},
): Promise<{ ended: Workflow; ran: string[]; user: TestTenant }> {
  const door = new Door();
  let submitted: Workflow | undefined;
  const failures: Error[] = [];
  const { user, ran } = await adding(async (by) => {
    await door.opened;
    await act(user, submitted!.id, by).catch((error: Error) => {
      // What a test expects inside a step must fail the test, not only the step.
      if (error.name === 'AssertionError') failures.push(error);
      throw error;
    });
  });
  const { quotas } = options;
  if (quotas) await node.get('POST', '/v1/tenants', { body: { id: user.tenant, quotas } });
  const jobs = { a: adder(options.a), ...rest } as WorkflowSteps;
  submitted = await submitWorkflow(user, { jobs, ...options.workflow });
  door.open();
  const ended = await workflowEnd(user, submitted);
  for (const failure of failures) throw failure;
  return { ended, ran, user };
}

describe('steps that a running step adds', () => {
  it('run at once, and whoever waits for the step waits for them, too', async () => {
    let answer: Awaited<ReturnType<typeof ask>> | undefined;
    const { ended, ran } = await runWith({ end: step('end', ['a']) }, async (user, id, by) => {
      answer = await ask(user, id, by, { b: step('b'), c: step('c', ['b']) });
      // They run while the step that added them still does.
      await until(
        async () => (await user.get<Workflow>('GET', `/v1/workflows/${id}`)).jobs.c!.state === 'succeeded',
      );
    });
    expect(answer!.status).toBe(201);
    expect(answer!.body.jobs).toMatchObject({
      b: { after: [], addedBy: 'a' },
      c: { after: ['b'], addedBy: 'a' },
    });
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 4, ended: 4, failed: 0 } });
    expect(ran).toEqual(['a', 'b', 'c', 'end']);
    expect([...ended.jobs.end!.after].sort()).toEqual(['a', 'b', 'c']);
    expect(ended.jobs.b!.addedBy).toBe('a');
    expect(ended.jobs.end!.addedBy).toBeNull();
  });

  it('without `join` only belong to the workflow, which does not end before them', async () => {
    const { ended, ran } = await runWith({ end: step('end', ['a']) }, async (user, id, by) => {
      const { status } = await ask(user, id, by, { b: step('b', ['end']) }, { join: false });
      expect(status).toBe(201);
    });
    expect(ran).toEqual(['a', 'end', 'b']);
    expect(ended.jobs.end!.after).toEqual(['a']);
  });

  it('may run after the step that adds them, with its result, and with that of steps that have ended', async () => {
    const rest = { before: step('before'), end: step('end', ['a']) };
    const { ended, ran, user } = await runWith(
      rest,
      async (each, id, by) => {
        const payload = { name: 'b', of: [{ $from: 'a.result.added' }, { $from: 'before.result.name' }] };
        const { status } = await ask(each, id, by, {
          b: step('b', ['a'], { payload }),
          c: step('c', [], { payload: { name: 'c', of: { $from: 'before.result.name' } } }),
          d: step('d', ['before'], { runIf: 'any-failed' }),
        });
        expect(status).toBe(201);
      },
      { a: { after: ['before'] } },
    );
    expect(ended.state).toBe('succeeded');
    // A step that is skipped counts for neither, and so not everything that `end` waits for has succeeded.
    expect(statesOf(ended)).toMatchObject({ b: 'succeeded', c: 'succeeded', d: 'skipped', end: 'skipped' });
    expect(ran).not.toContain('d');
    expect((await user.job(ended.jobs.b!.id)).payload).toEqual({ name: 'b', of: [true, 'before'] });
    expect((await user.job(ended.jobs.c!.id)).payload).toEqual({ name: 'c', of: 'before' });
  });

  it('that fail count for those that wait for the step', async () => {
    const rest = { end: step('end', ['a']), alert: step('alert', ['a'], { runIf: 'any-failed' }) };
    const { ended } = await runWith(rest, async (user, id, by) => {
      await ask(user, id, by, { b: step('b', [], { payload: { name: 'b', fails: true } }) });
    });
    expect(ended.state).toBe('failed');
    expect(statesOf(ended)).toEqual({ a: 'succeeded', b: 'failed', end: 'skipped', alert: 'succeeded' });
  });

  it('may wait for a time, or for an event that has come', async () => {
    const { ended, user } = await runWith({ end: step('end', ['a']) }, async (each, id, by) => {
      await each.get('POST', `/v1/workflows/${id}/events`, { body: { event: 'paid', payload: 42 } });
      const jobs = { time: { wait: '20ms' }, paid: { wait: { event: 'paid' } } };
      expect((await ask(each, id, by, jobs)).status).toBe(201);
    });
    expect(new Set(Object.values(statesOf(ended)))).toEqual(new Set(['succeeded']));
    expect((await user.job(ended.jobs.paid!.id)).result).toBe(42);
  });

  it('may add steps themselves, for which everybody waits', async () => {
    const door = new Door();
    let id = '';
    const { user, ran } = await adding(async (by, { name }) => {
      await door.opened;
      if (name === 'a') await ask(user, id, by, { b: { ...adder(), payload: { name: 'b' } } });
      else await ask(user, id, by, { c: step('c') });
    });
    const submitted = await submitWorkflow(user, {
      jobs: { a: adder(), end: step('end', ['a']) } as WorkflowSteps,
    });
    id = submitted.id;
    door.open();
    const ended = await workflowEnd(user, submitted);
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 4 } });
    expect(ran).toEqual(['a', 'b', 'c', 'end']);
  });
});

describe('a request to add steps', () => {
  it('that is repeated adds nothing, whatever has become of the steps', async () => {
    const { ended, ran } = await runWith({ end: step('end', ['a']) }, async (user, id, by) => {
      const jobs = { b: step('b') };
      const first = await ask(user, id, by, jobs);
      await until(
        async () => (await user.get<Workflow>('GET', `/v1/workflows/${id}`)).jobs.b!.state === 'succeeded',
      );
      const second = await ask(user, id, by, jobs);
      expect([first.status, second.status]).toEqual([201, 200]);
      expect(second.body.jobs.b!.id).toBe(first.body.jobs.b!.id);
      const third = await ask(user, id, by, { ...jobs, c: step('c', ['b']) });
      expect(third.status).toBe(201);
      expect(third.body.jobs.b!.id).toBe(first.body.jobs.b!.id);
    });
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 4 } });
    expect(ran).toEqual(['a', 'b', 'c', 'end']);
  });

  it('by a second attempt finds what the first one added', async () => {
    let tries = 0;
    const { ended, ran } = await runWith(
      { end: step('end', ['a']) },
      async (user, id, by) => {
        const { status } = await ask(user, id, by, { b: step('b') });
        tries += 1;
        if (tries === 1) throw new Error('after it has added');
        expect(status).toBe(200);
      },
      { a: { retry: { maxAttempts: 2, backoff: { base: '1ms' } } } },
    );
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 3 } });
    expect(ran.filter((name) => name === 'b')).toEqual(['b']);
    expect(ran.at(-1)).toBe('end');
  });

  it('of an attempt that has ended, or was replaced, is refused', async () => {
    let attempt: Attempt | undefined;
    const { ended, user } = await runWith(
      { end: step('end', ['a'], { hold: true }) },
      async (each, id, by) => {
        attempt = by;
        const early = await ask(each, id, { ...by, fence: by.fence + 1 }, { b: step('b') });
        expect([early.status, early.body.code]).toEqual([409, 'STALE_FENCE']);
        await each.get(
          'POST',
          `/v1/jobs/${(await each.get<Workflow>('GET', `/v1/workflows/${id}`)).jobs.end!.id}/release`,
        );
      },
    );
    const late = await ask(user, ended.id, attempt!, { b: step('b') });
    expect([late.status, late.body.code]).toEqual([409, 'STALE_FENCE']);
    expect(Object.keys(ended.jobs)).toEqual(['a', 'end']);
  });

  it('says what is wrong with the steps, and stores none then', async () => {
    const wrong: [object, object, string][] = [];
    const { ended } = await runWith(
      { end: step('end', ['a']), last: step('last', ['end']) },
      async (user, id, by) => {
        const cases: [Steps, object, string][] = [
          [{ end: step('end') }, {}, '/jobs/end'],
          [{ a: step('a') }, {}, '/jobs/a'],
          [{ b: step('b', ['nobody']) }, {}, '/jobs/b/after/0'],
          [{ b: step('b', ['c']), c: step('c', ['b']) }, {}, '/jobs/b/after/0'],
          [{ b: step('b', ['last']) }, {}, '/jobs/b/after/0'],
          [{ b: step('b', [], { payload: { $from: 'end.result' } }) }, {}, '/jobs/b/payload/$from'],
          [{ b: step('b', [], { payload: { $from: 'a.result' } }) }, {}, '/jobs/b/payload/$from'],
          [{ good: step('good'), b: { nothing: 1 } }, {}, '/jobs/b/nothing'],
        ];
        for (const [jobs, more, pointer] of cases) {
          const { status, body } = await ask(user, id, by, jobs, more);
          wrong.push([jobs, more, pointer]);
          expect([status, body.errors[0]?.pointer]).toEqual([422, pointer]);
        }
        const unnamed = await user.ask('POST', `/v1/workflows/${id}/jobs`, {
          body: { jobs: { b: step('b') } },
        });
        expect(unnamed.status).toBe(422);
      },
    );
    expect(wrong).toHaveLength(8);
    expect(Object.keys(ended.jobs)).toEqual(['a', 'end', 'last']);
    expect(ended.state).toBe('succeeded');
  });

  it('is refused beyond the most steps of a workflow', async () => {
    const rest: Record<string, object> = {};
    for (let i = 0; i < 9_998; i++) rest[`w${i}`] = { wait: '1ms' };
    const { ended } = await runWith(rest, async (user, id, by) => {
      const two = await ask(user, id, by, { b: step('b'), c: step('c') });
      expect([two.status, two.body.errors[0]!.pointer]).toEqual([422, '/jobs']);
      expect((await ask(user, id, by, { b: step('b') })).status).toBe(201);
    });
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 10_000 } });
  }, 60_000);

  it('may add thousands of steps, which everybody waits for', async () => {
    const jobs = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`b${i}`, { wait: '1ms' }]));
    const { ended } = await runWith({ end: step('end', ['a']) }, async (user, id, by) => {
      expect((await ask(user, id, by, { ...jobs, last: { wait: '1ms', after: ['b0', 'b1'] } })).status).toBe(
        201,
      );
    });
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 3_003, ended: 3_003 } });
    expect(ended.jobs.end!.after).toHaveLength(3_002);
  }, 60_000);

  it('is refused to a workflow that stops', async () => {
    let status = 0;
    const { ended } = await runWith(
      { bad: step('bad', [], { payload: { name: 'bad', fails: true } }) },
      async (user, id, by) => {
        await until(async () => (await user.get<Workflow>('GET', `/v1/workflows/${id}`)).stopping !== null);
        const answer = await ask(user, id, by, { b: step('b') });
        status = answer.status;
        expect(answer.body.code).toBe('WORKFLOW_STOPS');
      },
      { workflow: { onFailure: 'stop' } },
    );
    expect(status).toBe(409);
    expect(statesOf(ended)).toEqual({ a: 'succeeded', bad: 'failed' });
  });
});

describe('a workflow to which steps were added', () => {
  /** A workflow whose step `a` adds a page for each number in the list. */
  async function withPages(pages: number[], more: (by: Attempt) => Promise<void> = async () => undefined) {
    const door = new Door();
    let id = '';
    const { user, ran } = await adding(async (by) => {
      await door.opened;
      const jobs = pages.map((page) => [`page-${page}`, step(`page-${page}`)] as const);
      await ask(user, id, by, Object.fromEntries(jobs));
      await more(by);
    });
    const jobs = { a: adder(), end: step('end', ['a']) } as WorkflowSteps;
    const submitted = await submitWorkflow(user, { jobs });
    id = submitted.id;
    door.open();
    return { user, ran, submitted, ended: await workflowEnd(user, submitted) };
  }

  const retry = (user: TestTenant, id: string, body: object = {}) =>
    user.ask<Workflow & { code: string }>('POST', `/v1/workflows/${id}/retry`, { body });

  it('forgets them when the step that added them runs again, which adds them anew', async () => {
    const pages = [1, 2];
    const { user, ran, ended } = await withPages(pages);
    expect(ended).toMatchObject({ state: 'succeeded', progress: { steps: 4 } });
    pages.splice(0, 2, 2, 3, 4);
    const before = ran.length;
    const { status, body } = await retry(user, ended.id, { from: 'a' });
    expect([status, Object.keys(body.jobs)]).toEqual([200, ['a', 'end']]);
    const again = await workflowEnd(user, ended);
    expect(again).toMatchObject({ state: 'succeeded', run: 2, progress: { steps: 5, ended: 5 } });
    expect(Object.keys(again.jobs).sort()).toEqual(['a', 'end', 'page-2', 'page-3', 'page-4']);
    expect(ran.slice(before).sort()).toEqual(['a', 'end', 'page-2', 'page-3', 'page-4']);
    expect(ran.at(-1)).toBe('end');
    expect(again.jobs['page-2']!.id).not.toBe(ended.jobs['page-2']!.id);
    // The job of the first run stays in history.
    expect((await user.job(ended.jobs['page-1']!.id)).state).toBe('succeeded');
  });

  it('keeps them when the failed step that added them is retried', async () => {
    let isBad = true;
    const { user, ran, ended } = await withPages([1, 2], async () => {
      if (isBad) throw new Error('not yet');
    });
    expect(statesOf(ended)).toMatchObject({ a: 'failed', end: 'skipped' });
    isBad = false;
    expect((await retry(user, ended.id)).status).toBe(200);
    const again = await workflowEnd(user, ended);
    expect(again).toMatchObject({ state: 'succeeded', progress: { steps: 4, ended: 4 } });
    expect(ran.filter((name) => name === 'page-1')).toHaveLength(1);
    expect(ran.at(-1)).toBe('end');
  });

  it('is not run again from a step if that would lose steps that others have added', async () => {
    const door = new Door();
    let id = '';
    const { user } = await adding(async (by, { name }) => {
      await door.opened;
      if (name === 'a') await ask(user, id, by, { b: step('b') });
      else {
        await until(
          async () => (await user.get<Workflow>('GET', `/v1/workflows/${id}`)).jobs.b !== undefined,
        );
        await ask(user, id, by, { c: step('c', ['b']) });
      }
    });
    const jobs = { a: adder(), other: { ...adder(), payload: { name: 'other' } } };
    const submitted = await submitWorkflow(user, { jobs: jobs as WorkflowSteps });
    id = submitted.id;
    door.open();
    const ended = await workflowEnd(user, submitted);
    expect(statesOf(ended)).toMatchObject({ b: 'succeeded', c: 'succeeded' });
    const { status, body } = await retry(user, id, { from: 'a' });
    expect([status, body.code]).toEqual([409, 'RERUN_LOSES_STEPS']);
    // From a step that added nothing, everything behind it runs again as it is.
    expect((await retry(user, id, { from: 'b' })).status).toBe(200);
    expect((await workflowEnd(user, ended)).progress).toMatchObject({ steps: 4, ended: 4 });
  });
});

describe('who may add steps', () => {
  it('the token of the attempt may, to its own workflow', async () => {
    const { secret } = node.node.context;
    const tokenOf = (tenant: string, { jobId, fence }: Attempt, limits?: KeyLimits) =>
      signAttemptToken(
        secret,
        { tenant, jobId, fence, ...(limits && { limits }) },
        Date.now() + 60_000,
        Date.now(),
      );
    const { ended } = await runWith({}, async (user, id, by) => {
      const other = await submitWorkflow(user, { jobs: { x: step('x', [], { hold: true }) } });
      const add = (workflow: string, key: string, name: string) =>
        node.ask<{ code?: string }>('POST', `/v1/workflows/${workflow}/jobs`, {
          ...{ key, body: { jobs: { [name]: step(name) } } },
        });
      const token = tokenOf(user.tenant, by);
      expect((await add(id, token, 'b')).status).toBe(201);
      expect((await add(other.id, token, 'b')).status).toBe(404);
      expect((await add(id, tokenOf('another', by), 'c')).status).toBe(404);
      const stale = await add(id, tokenOf(user.tenant, { ...by, fence: 7 }), 'c');
      expect([stale.status, stale.body.code]).toEqual([409, 'STALE_FENCE']);
      // What the key of its worker may not submit, an attempt may not add.
      const limited = await add(id, tokenOf(user.tenant, by, { queues: ['other'], tasks: null }), 'c');
      expect([limited.status, limited.body.code]).toEqual([403, 'FORBIDDEN']);
      const allowed = await add(id, tokenOf(user.tenant, by, { queues: ['default'], tasks: ['note'] }), 'd');
      expect(allowed.status).toBe(201);
      await user.get('POST', `/v1/workflows/${other.id}/cancel`);
    });
    expect(Object.keys(ended.jobs)).toEqual(['a', 'b', 'd']);
  });

  it('a restricted key of a worker may not beyond what it is restricted to, and a key without the scope not at all', async () => {
    const { ended } = await runWith({}, async (user, id, by) => {
      const keyFor = async (scopes: string[], queues?: string[]) => {
        const body = { name: 'k', tenant: user.tenant, scopes, ...(queues && { queues }) };
        return (await node.get<{ key: string }>('POST', '/v1/keys', { body })).key;
      };
      const add = async (key: string, queue: string) => {
        const body = { by, jobs: { b: step('b', [], { queue }) } };
        return (await node.ask('POST', `/v1/workflows/${id}/jobs`, { key, body })).status;
      };
      expect(await add(await keyFor(['submit']), 'default')).toBe(403);
      const other = await keyFor(['work'], ['other']);
      // It does not find a job that its workers could not have been given.
      expect(await add(other, 'other')).toBe(404);
      const own = await keyFor(['work'], ['default']);
      expect(await add(own, 'other')).toBe(403);
      expect(await add(own, 'default')).toBe(201);
    });
    expect(Object.keys(ended.jobs)).toEqual(['a', 'b']);
  });

  it('the quota of the tenant holds for what is added', async () => {
    const { ended } = await runWith(
      {},
      async (user, id, by) => {
        const two = await ask(user, id, by, { b: step('b'), c: step('c') });
        expect([two.status, two.body.code]).toEqual([429, 'QUOTA_EXCEEDED']);
        expect((await ask(user, id, by, { b: step('b') })).status).toBe(201);
      },
      { quotas: { liveJobs: 2 } },
    );
    expect(Object.keys(ended.jobs)).toEqual(['a', 'b']);
  });
});

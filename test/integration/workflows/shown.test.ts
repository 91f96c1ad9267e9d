import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import type { Job } from '../../../src/core/job.js';
import { PermanentError, task } from '../../../src/core/task.js';
import type { Page, Why } from '../../../src/core/wire.js';
import type { Workflow, WorkflowAfterEvent, WorkflowSteps } from '../../../src/core/workflow.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { Door } from '../../happening.js';
import { type ApiUser, TestNode, type TestTenant } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { submitWorkflow, workflowEnd } from './workflow-tester.js';

/** What people and programs are shown of steps: which ones they are, what they wait for, and why they failed. */
let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

function run(user: TestTenant, ...args: readonly string[]) {
  const { cli, stdout, stderr } = cliUnderTest({
    environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey },
    stdin: Readable.from([]),
  });
  return runCli([...args, '--tenant', user.tenant], cli).then((code) => ({
    ...{ code, stdout: stdout(), stderr: stderr() },
  }));
}

const submit = (user: ApiUser, jobs: object, more: object = {}): Promise<Workflow> =>
  submitWorkflow(user, { jobs: jobs as WorkflowSteps, ...more });

const read = (user: ApiUser, { id }: { readonly id: string }) =>
  user.get<Workflow>('GET', `/v1/workflows/${id}`);

const fragile = task('fragile', async () => {
  throw new PermanentError('the glass broke');
});

it('a job names its step, alone and in lists, and lists do not say that steps have nothing before them', async () => {
  const user = node.newTenant();
  await user.work([fragile]);
  const jobs = { good: { wait: '1ms' }, bad: { task: 'fragile', after: ['good'] } };
  const workflow = await workflowEnd(user, await submit(user, jobs));
  const { id } = workflow.jobs.bad!;
  const job = await user.job(id);
  expect(job).toMatchObject({ step: 'bad', waitsFor: null, dependsOn: [workflow.jobs.good!.id] });
  const [listed] = (await user.get<Page<Job>>('GET', `/v1/jobs?workflow=${workflow.id}&state=failed`)).data;
  expect(listed).toMatchObject({ id, step: 'bad' });
  for (const list of ['dependsOn', 'dependents', 'ancestors', 'descendants'])
    expect(listed).not.toHaveProperty(list);
  const alone = await user.submit({ task: 'fragile', hold: true });
  const held = (await user.get<Page<Job>>('GET', '/v1/jobs?state=pending')).data;
  expect(held).toMatchObject([{ id: alone.id, step: null, dependsOn: [] }]);

  expect((await run(user, 'job', 'get', id)).stdout).toMatch(/^step +bad$/m);
  const table = (await run(user, 'job', 'list', '--workflow', workflow.id, '--state', 'failed')).stdout;
  expect(table).toMatch(/^ID +STATE +STEP +TASK /);
  expect(table).toMatch(/ failed +bad +fragile /);
  const shown = (await run(user, 'workflow', 'get', workflow.id)).stdout;
  expect(shown).toMatch(/WHY\nbad +failed +good .* the glass broke\ngood +succeeded/);
  expect(shown).toMatch(/^steps +2 of 2 steps ended, 1 failed$/m);
});

it('a step that waits says for which event or time, and one that is a workflow for which one', async () => {
  const user = node.newTenant();
  const jobs = {
    paid: { wait: { event: 'paid', timeout: '2d' } },
    approved: { wait: { event: 'approved' } },
    pause: { wait: '1h' },
    inner: { workflow: { jobs: { rest: { wait: '1h' } } } },
    later: { wait: { event: 'later' }, after: ['paid'] },
  };
  const submitted = await submit(user, jobs);
  expect(submitted.jobs.approved!.waitsFor).toEqual({ event: 'approved', until: null, workflow: null });
  await until(async () => (await read(user, submitted)).jobs.inner!.workflow !== null);
  const { jobs: steps } = await read(user, submitted);
  const inner = steps.inner!.workflow;
  const until2d = { event: 'paid', until: expect.stringMatching(/Z$/), workflow: null };
  const expected = {
    paid: until2d,
    approved: { event: 'approved', until: null, workflow: null },
    pause: { event: null, until: expect.stringMatching(/Z$/), workflow: null },
    inner: { event: null, until: null, workflow: inner },
    later: null,
  };
  expect(Object.fromEntries(Object.entries(steps).map(([name, { waitsFor }]) => [name, waitsFor]))).toEqual(
    expected,
  );
  expect(steps.paid!.waitsFor).toEqual(submitted.jobs.paid!.waitsFor);
  const { data } = await user.get<Page<Job>>('GET', `/v1/jobs?workflow=${submitted.id}`);
  for (const { step, waitsFor } of data) expect(waitsFor).toEqual(expected[step as keyof typeof expected]);
  expect((await user.job(steps.inner!.id)).waitsFor).toEqual(expected.inner);

  const graph = (await run(user, 'workflow', 'graph', submitted.id)).stdout;
  expect(graph).toMatch(/^paid waits for the event paid until \d{4}-.*Z$/m);
  expect(graph).toContain(`inner waits for workflow ${inner}\n`);
  expect(graph).not.toContain('later waits');
  const details = (await run(user, 'workflow', 'get', submitted.id)).stdout;
  expect(details).toMatch(/^approved +blocked .* waits for the event approved$/m);
  const job = (await run(user, 'job', 'get', steps.approved!.id)).stdout;
  expect(job).toMatch(/^waits for +the event approved$/m);
  expect(job).not.toMatch(/^(task|attempt|timeout|delivery) /m);
  const why = (await run(user, 'workflow', 'why', submitted.id)).stdout;
  expect(why).toMatch(/^paid +blocked +event +The step waits for the event paid until /m);
  expect(why).not.toMatch(/^later /m);
  expect((await run(user, 'job', 'why', steps.pause!.id)).stdout).toMatch(/^wakeAt +\d{4}-.*Z$/m);
});

it('an event says which steps it ended, whether it had come before, and whether any step asks for it', async () => {
  const user = node.newTenant();
  const { id } = await submit(user, {
    a: { wait: { event: 'paid' } },
    b: { wait: { event: 'paid' } },
    c: { wait: { event: 'paid' }, after: ['held'] },
    held: { task: 'work', hold: true },
    d: { wait: { event: 'shipped' }, after: ['held'] },
  });
  const send = async (event: string) =>
    (await user.get<WorkflowAfterEvent>('POST', `/v1/workflows/${id}/events`, { body: { event } })).event;
  expect(await send('payd')).toEqual({
    ...{ name: 'payd', completed: [], repeated: false, expected: false, awaited: ['paid', 'shipped'] },
  });
  const paid = await user.connect().workflow(id).sendEvent('paid', 1);
  expect(paid).toEqual({
    ...{ name: 'paid', completed: ['a', 'b'], repeated: false, expected: true, awaited: ['shipped'] },
  });
  expect(await send('paid')).toMatchObject({ completed: [], repeated: true, expected: true });
  expect(await send('shipped')).toMatchObject({ completed: [], repeated: false, expected: true });
  const body = { event: 'other' };
  const headers = { 'idempotency-key': 'other' };
  for (let i = 0; i < 2; i += 1) {
    const answer = await user.get<WorkflowAfterEvent>('POST', `/v1/workflows/${id}/events`, {
      body,
      headers,
    });
    expect(answer.event).toMatchObject({ name: 'other', repeated: false });
  }
  const told = await run(user, 'workflow', 'event', id, 'shiped');
  expect(told.code).toBe(0);
  expect(told.stdout).toContain('kept for steps that will wait for it; running, 2 of 5 steps ended');
  expect(told.stderr).toBe('No step that has not ended waits for an event shiped. Did you mean shipped?\n');
  const again = await run(user, 'workflow', 'event', id, 'paid');
  expect(again.stdout).toContain('an event of that name had come before, nothing was changed');
  expect(again.stderr).toBe('');
});

it('the critical path counts an inner workflow as running, and leads to the step that added others', async () => {
  const user = node.newTenant();
  const door = new Door();
  const work = task('work', async () => door.opened);
  const plan = task('plan', async (_: unknown, ctx) => {
    await ctx.spawn((w) => w.run(work, undefined, { name: 'page' }));
  });
  await user.work([work, plan], { slots: 5 });
  const jobs = { plan: { task: 'plan' }, after: { wait: '1ms', after: ['plan'] } };
  const spawning = await submit(user, jobs);
  const nested = await submit(user, { inner: { workflow: { jobs: { work: { task: 'work' } } } } });
  await until(async () => (await read(user, spawning)).jobs.page !== undefined);
  await until(async () => (await read(user, nested)).jobs.inner!.workflow !== null);
  door.open();
  const { criticalPath, jobs: steps } = await workflowEnd(user, spawning);
  expect(criticalPath.steps.map(({ name }) => name)).toEqual(['plan', 'page', 'after']);
  expect(steps.page).toMatchObject({ addedBy: 'plan', after: [] });
  const [inner] = (await workflowEnd(user, nested)).criticalPath.steps;
  expect(inner!.ranMs).toBeGreaterThan(0);
  const graph = (await run(user, 'workflow', 'graph', spawning.id)).stdout;
  expect(graph).toMatch(/^✓ plan\n/);
  expect(graph.indexOf('plan')).toBeLessThan(graph.indexOf('page'));
  expect(graph.split('\n')[0]).not.toContain('page');
  const dot = (await run(user, 'workflow', 'graph', spawning.id, '--dot')).stdout;
  expect(dot).toContain('"plan" -> "page" [label="adds", style=dashed];');
});

it('an attempt that was handed on says so, and until when it waits for a report', async () => {
  const user = node.newTenant();
  const worker = await ProtocolWorker.register(user);
  const { id } = await user.submit({ task: 'work', timeout: '5m' });
  const attempt = await worker.claimOne();
  expect((await user.job(id)).handedOnAt).toBeNull();
  await worker.handOn(attempt);
  const job = await user.job(id);
  expect(job.handedOnAt).toMatch(/Z$/);
  const reportUntil = new Date(Date.parse(job.startedAt!) + 300_000).toISOString();
  const why = await user.get<Why>('GET', `/v1/jobs/${id}/why`);
  expect(why).toMatchObject({
    gate: 'not-waiting',
    detail: `The attempt was handed on; it waits for a report until ${reportUntil}.`,
    figures: { worker: worker.id, reportUntil },
  });
  expect((await run(user, 'job', 'get', id)).stdout).toMatch(
    new RegExp(`^waits for +a report until ${reportUntil}; its worker handed it on at `, 'm'),
  );
});

it('a batch says why it waits, on the command line too', async () => {
  const user = node.newTenant();
  const { id } = await user.get<{ id: string }>('POST', '/v1/batches', {
    body: { jobs: [{ task: 'nobody' }] },
  });
  const { code, stdout } = await run(user, 'batch', 'why', id);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^state +pending\ngate +(capacity|workers)\ndetail +\S/);
});

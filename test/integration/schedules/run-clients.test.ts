import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import { member } from '../../../src/client/batch-handle.js';
import { scheduleBatch, scheduleWorkflow } from '../../../src/client/run-schedules.js';
import { schedule } from '../../../src/client/schedules-as-code.js';
import { task } from '../../../src/core/task.js';
import type { ScheduleView } from '../../../src/core/wire.js';
import { workflow } from '../../../src/core/workflow/workflow-builder.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';
import { handMadeElf } from '../../programs/hand-made-elf.js';
import { push } from '../artifacts/artifact-for-tests.js';

/** Schedules of workflows and batches as programs and people use them. */
let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const echo = task('echo', async (input: { n: number }) => input);
const chain = workflow('chain', (w, input: { n: number }) => {
  const first = w.run(echo, { n: input.n });
  return w.run(echo, { n: first.result.n });
});

async function run(user: TestTenant, args: readonly string[], input: unknown = '') {
  const { cli, stdout, stderr } = cliUnderTest({
    environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey },
    stdin: Readable.from([JSON.stringify(input)]),
  });
  const code = await runCli([...args, '--tenant', user.tenant], cli);
  return { code, stdout: stdout(), stderr: stderr() };
}

it('a program schedules a workflow and a batch, and runs them by hand', async () => {
  const user = node.newTenant();
  await user.work([echo], { slots: 4 });
  const punctual = user.connect();
  await punctual.define(chain);
  const nightly = await punctual.scheduleWorkflow(chain, {
    cron: '@daily',
    overlap: 'skip',
    input: { n: 5 },
  });
  expect(await nightly.get()).toMatchObject({
    name: 'chain',
    workflow: 'chain',
    payload: { n: 5 },
    overlap: 'skip',
  });
  const result: { n: number } = await (await nightly.run()).result();
  expect(result).toEqual({ n: 5 });
  const pair = [member(echo, { n: 0 }), member(echo, { n: 1 })] as const;
  const together = await punctual.scheduleBatch(pair, { name: 'pair', every: '1h', startTimeout: '5m' });
  expect(await (await together.run()).results()).toEqual([{ n: 0 }, { n: 1 }]);
  expect(await together.occurrences({ to: new Date(Date.now() + 60_000) })).toMatchObject([
    { reason: 'manual', batchId: expect.any(String) },
  ]);
  const made = [];
  for await (const { schedule } of punctual.workflows({ schedule: 'chain' })) made.push(schedule);
  for await (const { schedule } of punctual.batches({ schedule: 'pair' })) made.push(schedule);
  expect(made).toEqual(['chain', 'pair']);
});

it('schedules of all kinds are in the code of a program, and nothing is written where nothing differs', async () => {
  const user = node.newTenant();
  const punctual = user.connect();
  await punctual.define(chain);
  const entries = [
    schedule(echo, { name: 'job', every: '1h', input: { n: 1 } }),
    scheduleWorkflow(chain, { name: 'graph', every: '1h', input: { n: 1 } }),
    scheduleBatch([member(echo, { n: 1 })], { name: 'gang', every: '1h' }),
  ];
  expect(await punctual.schedules(entries)).toMatchObject({ created: ['job', 'graph', 'gang'] });
  expect(await punctual.schedules(entries)).toMatchObject({ created: [], changed: [], unchanged: 3 });
  // What a schedule runs can be replaced by something of another kind.
  await punctual.scheduleWorkflow('chain', { name: 'job', every: '2h', input: { n: 1 } });
  const view = await user.get<ScheduleView>('GET', '/v1/schedules/job');
  expect(view).toMatchObject({ workflow: 'chain' });
  expect(view.task).toBeUndefined();
  await expect(punctual.scheduleWorkflow('nothing', { every: '1h' })).rejects.toThrow('/workflow');
});

it('the command line makes and shows them', async () => {
  const user = node.newTenant();
  await user.work([echo]);
  await user.connect().define(chain);
  const graph = ['schedule', 'create', 'graph', '--workflow', 'chain', '--every', '1h'];
  expect(await run(user, [...graph, '--payload', '{"n": 1}'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/runs +workflow chain\n/),
  });
  const batch = {
    jobs: [
      { task: 'echo', payload: { n: 1 } },
      { task: 'echo', payload: { n: 2 } },
    ],
  };
  const made = await run(user, ['schedule', 'create', 'gang', '--batch', '-', '--every', '1h'], batch);
  expect(made.stdout).toMatch(/runs +batch of 2 jobs\n/);
  expect((await run(user, ['schedule', 'list'])).stdout).toMatch(/batch of 2 jobs[\s\S]*workflow chain/);
  const id = (await run(user, ['schedule', 'run', 'graph'])).stdout.trim();
  expect((await run(user, ['workflow', 'list', '--schedule', 'graph', '--wide'])).stdout).toContain(id);
  const gang = (await run(user, ['schedule', 'run', 'gang'])).stdout.trim();
  expect((await run(user, ['batch', 'get', gang, '--json'])).stdout).toContain('"schedule":"gang"');
  expect(
    (await run(user, ['schedule', 'get', 'graph', '--to', '2200-01-01T00:00:00Z', '--wide'])).stdout,
  ).toContain(id);
  expect(await run(user, ['schedule', 'create', 'x', '--every', '1h'])).toMatchObject({ code: 2 });
  expect(await run(user, [...graph, '--task', 'echo'])).toMatchObject({ code: 2 });
});

it('the command line schedules a program with what goes with it, and changes it', async () => {
  const user = node.newTenant();
  await push(user, handMadeElf('x64'), { name: 'packer', version: '1' });
  const program = ['--arg=-v', '--env', 'REGION=eu', '--limit', 'memory=64MiB', '--isolation', 'auto'];
  const create = ['schedule', 'create', 'packs', '--every', '5s', '--exec', 'packer@1', ...program];
  expect(await run(user, [...create, '--artifact-timeout', '2h'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/runs +packer@1\n/),
  });
  expect(await user.get<ScheduleView>('GET', '/v1/schedules/packs')).toMatchObject({
    every: '5s',
    target: {
      ...{ type: 'exec', artifact: 'packer@1', artifactTimeout: '2h', args: ['-v'] },
      ...{ env: { REGION: 'eu' }, limits: { memory: 67_108_864 }, isolation: 'auto' },
    },
  });
  expect((await run(user, ['schedule', 'change', 'packs', '--exec', 'packer', '--arg', 'x'])).code).toBe(0);
  const { target } = await user.get<ScheduleView>('GET', '/v1/schedules/packs');
  expect(target).toEqual({ type: 'exec', artifact: 'packer', args: ['x'] });
  expect(await run(user, [...create, '--task', 'echo'])).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('exactly one of') },
  });
});

it('the command line changes what is named, takes back what is unset, and leaves the rest', async () => {
  const user = node.newTenant();
  const options = ['--task', 'echo', '--cron', '@daily', '--overlap', 'skip', '--priority', '7'];
  expect((await run(user, ['schedule', 'create', 'nightly', ...options])).code).toBe(0);
  const change = (...args: readonly string[]) => run(user, ['schedule', 'change', 'nightly', ...args]);
  const changed = await change(
    '--every',
    '2h',
    '--queue',
    'night',
    '--unset',
    'overlap',
    '--payload',
    '{"n":1}',
  );
  expect(changed.stdout).toMatch(/^when +every 2h$/m);
  const read = () => user.get<ScheduleView>('GET', '/v1/schedules/nightly');
  const view = await read();
  expect(view).toMatchObject({
    ...{ every: '2h', queue: 'night', overlap: 'allow', priority: 7, task: 'echo', payload: { n: 1 } },
  });
  expect(view.cron).toBeUndefined();
  expect(await change()).toMatchObject({ code: 2, stderr: expect.stringContaining('Say what to change') });
  expect((await change('--task', 'a', '--http', 'POST', 'https://example.com')).code).toBe(2);
  expect((await run(user, ['schedule', 'change', 'nobody', '--every', '1h'])).code).toBe(5);
});

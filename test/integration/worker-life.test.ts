import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../src/core/job.js';
import type { Page, StatsView, WorkerView } from '../../src/core/wire.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { BUILT_SDK, PunctualProcess } from '../punctual-process.js';
import { temporaryFolder } from '../temporary-folder.js';

/** The life of a worker in a process of its own, through what befalls it and its scheduler. */

/** Dead workers are noticed quickly. */
const QUICK = { heartbeatInterval: '200ms', workerTimeout: '1500ms' };

const TASKS = `
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { task } from ${JSON.stringify(BUILT_SDK)};
export const blocking = task('blocking', (input, { fence }) => {
  const until = performance.now() + input.ms;
  while (performance.now() < until);
  return { fence };
});
export const gated = task('gated', async (input, { fence }) => {
  console.log('started', fence);
  while (!existsSync(input.gate)) await sleep(10);
  return { fence };
});
export const quick = task('quick', (input) => input);
`;

interface WorkerUnderTest {
  readonly process: PunctualProcess;
  readonly folder: string;
}

async function newFolder(): Promise<string> {
  const folder = await temporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'tasks.mjs'), TASKS);
  return folder;
}

/** Starts `punctual worker run` and waits until it is registered. */
async function work(
  node: TestNode,
  { folder, url = node.url }: { folder?: string; url?: string } = {},
): Promise<WorkerUnderTest> {
  const where = folder ?? (await newFolder());
  const process = new PunctualProcess(
    ['worker', 'run', '--name', 'w', '--module', 'tasks.mjs', '--url', url, '--log-level', 'debug'],
    { folder: where, environment: { PUNCTUAL_API_KEY: node.apiKey } },
  );
  onTestFinished(async () => void (await process.kill('SIGKILL')));
  await process.prints('stderr', /registered/);
  return { process, folder: where };
}

async function workers(node: TestNode): Promise<readonly WorkerView[]> {
  return (await node.get<Page<WorkerView>>('GET', '/v1/workers')).data;
}

const open = (folder: string, gate: string) => writeFile(join(folder, gate), '');

it('a handler that blocks its process beyond the worker timeout does not make the worker look dead', async () => {
  const node = await nodeForTest({ settings: QUICK });
  await work(node);
  const { id } = await node.submit({ task: 'blocking', payload: { ms: 4_000 } });
  expect(await node.ended(id)).toMatchObject({ state: 'succeeded', attempt: 1, result: { fence: 1 } });
  expect((await workers(node)).map(({ state }) => state)).toEqual(['alive']);
});

it('a worker that was suspended beyond its timeout delivers a stale result and goes on with a new session', async () => {
  const node = await nodeForTest({ settings: QUICK });
  const { process, folder } = await work(node);
  const gate = join(folder, 'gate');
  const { id } = await node.submit({ task: 'gated', payload: { gate } });
  await process.prints('stdout', /started 1/);
  const [before] = await workers(node);
  process.child.kill('SIGSTOP');
  await expect.poll(async () => (await node.job(id)).attempts[0]?.outcome, { timeout: 10_000 }).toBe('lost');
  process.child.kill('SIGCONT');
  await process.prints('stderr', /registered[\s\S]*registered/);
  await process.prints('stdout', /started 2/);
  await open(folder, 'gate');
  const job = await node.ended(id);
  expect(job).toMatchObject({ state: 'succeeded', result: { fence: 2 } });
  expect(job.attempts.map(({ outcome }) => outcome)).toEqual(['lost', 'succeeded']);
  expect(job.worker).not.toBe(before!.id);
  await expect
    .poll(async () => (await node.get<StatsView>('GET', '/v1/stats')).staleCompletions, { timeout: 10_000 })
    .toBe(1);
  expect(await node.job(id)).toEqual(job);
});

it('a result that the scheduler could not take survives the kill of its worker and counts', async () => {
  const node = await nodeForTest({ settings: { heartbeatInterval: '500ms', workerTimeout: '20s' } });
  const port = Number(new URL(node.url).port);
  const first = await work(node);
  const { id } = await node.submit({ task: 'gated', payload: { gate: join(first.folder, 'gate') } });
  await first.process.prints('stdout', /started 1/);
  await node.node.stop();
  await open(first.folder, 'gate');
  await expect.poll(() => status(first.process), { timeout: 10_000 }).toMatchObject({ kept: 1 });
  await first.process.kill('SIGKILL');
  const again = await nodeForTest({ database: node.database, settings: { port, workerTimeout: '20s' } });
  await work(again, { folder: first.folder });
  const job = await again.ended(id);
  expect(job).toMatchObject({ state: 'succeeded', attempt: 1, result: { fence: 1 } });
});

it('a killed worker that comes back is not waited for: what it ran is tried again at once', async () => {
  const node = await nodeForTest({ settings: { workerTimeout: '60s' } });
  const first = await work(node);
  const gate = join(first.folder, 'gate');
  const { id } = await node.submit({ task: 'gated', payload: { gate } });
  await first.process.prints('stdout', /started 1/);
  await expect.poll(async () => (await workers(node))[0]!.running).toBe(1);
  await first.process.kill('SIGKILL');
  await open(first.folder, 'gate');
  await work(node, { folder: first.folder });
  const job = await node.ended(id);
  expect(job.attempts.map(({ outcome }) => outcome)).toEqual(['lost', 'succeeded']);
  expect(job.result).toEqual({ fence: 2 });
});

it('the first SIGTERM drains, and the second ends at once', async () => {
  const node = await nodeForTest({ settings: QUICK });
  const { process, folder } = await work(node);
  const { id } = await node.submit({ task: 'gated', payload: { gate: join(folder, 'gate') } });
  await process.prints('stdout', /started 1/);
  process.child.kill('SIGTERM');
  await process.prints('stderr', /draining/);
  await open(folder, 'gate');
  expect(await process.ended).toMatchObject({ code: 0 });
  expect(await node.job(id)).toMatchObject({ state: 'succeeded', attempt: 1 });
  const impatient = await work(node);
  const stuck = await node.submit({ task: 'gated', payload: { gate: join(folder, 'never') } });
  await impatient.process.prints('stdout', /started 1/);
  impatient.process.child.kill('SIGTERM');
  await impatient.process.prints('stderr', /draining/);
  // Signals that come within a moment of each other are one order, so whoever is impatient insists.
  const insisting = setInterval(() => impatient.process.child.kill('SIGTERM'), 50);
  onTestFinished(() => clearInterval(insisting));
  expect(await impatient.process.ended).toMatchObject({ code: 130 });
  clearInterval(insisting);
  await expect
    .poll(async () => (await node.job(stuck.id)).attempts[0]?.outcome, { timeout: 10_000 })
    .toBe('lost');
});

it('a worker whose first address is dead works through the second, and tells its status on SIGUSR2', async () => {
  const node = await nodeForTest();
  const { process } = await work(node, { url: `http://127.0.0.1:1,${node.url}` });
  const { id } = await node.submit({ task: 'quick', payload: 'here' });
  expect(await node.ended(id)).toMatchObject({ state: 'succeeded', result: 'here' });
  const [view] = await workers(node);
  expect(await status(process)).toMatchObject({
    phase: 'running',
    name: 'w',
    workerId: view!.id,
    slots: 10,
    running: 0,
    kept: 0,
  });
});

it('a worker that the leader has forgotten registers again and carries on', async () => {
  const node = await nodeForTest();
  const { process } = await work(node);
  const [view] = await workers(node);
  await node.ask('DELETE', `/v1/workers/${view!.id}`);
  await process.prints('stderr', /registered[\s\S]*registered/);
  const { id } = await node.submit({ task: 'quick', payload: 2 });
  const job: Job = await node.ended(id);
  expect(job).toMatchObject({ state: 'succeeded' });
  expect(job.worker).not.toBe(view!.id);
});

/** Has a worker log its status, and gives what it logged. */
async function status(process: PunctualProcess): Promise<Record<string, unknown>> {
  const seen = process.stderr.length;
  process.child.kill('SIGUSR2');
  const ahead = new RegExp(`^[\\s\\S]{${seen}}[\\s\\S]*?^(\\{.*"msg":"status"\\})$`, 'm');
  const [, line] = await process.prints('stderr', ahead);
  return JSON.parse(line!);
}

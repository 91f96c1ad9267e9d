import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { PermanentError, task } from '../../src/core/task.js';
import { MemoryLog } from '../memory-log.js';
import { TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** What the logs of nodes and workers say when jobs fail, and when nobody can be reached. */

const log = new MemoryLog();
let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start({ log });
}, 60_000);
afterAll(() => node?.stop(), 30_000);

const about = (id: string) => log.lines.filter(({ fields }) => fields.job === id);

it('a job that fails for good is in the log of its leader once, with its queue, attempt, code and message', async () => {
  const unlucky = task('unlucky', { retry: { maxAttempts: 2, backoff: { base: '1ms' } } }, (_: null, ctx) => {
    throw Object.assign(new Error(`no luck at attempt ${ctx.attempt}`), { code: 'LUCKLESS' });
  });
  const own = new MemoryLog();
  const tenant = node.newTenant();
  await tenant.work([unlucky], { log: own, queues: ['games'] });
  const { id } = await tenant.connect().submit(unlucky, null, { queue: 'games' });
  const job = await tenant.ended(id);
  expect(job).toMatchObject({ failures: 2, attempt: 2, error: { code: 'LUCKLESS' } });
  expect(job.error!.stack).toContain('failures.test');
  const fields = { job: id, tenant: tenant.tenant, task: 'unlucky', queue: 'games', code: 'LUCKLESS' };
  expect(about(id)).toEqual([
    {
      level: 'warn',
      message: 'a job of unlucky has failed for good',
      fields: { ...fields, attempt: 2, error: 'no luck at attempt 2' },
    },
  ]);
  expect(own.lines.filter(({ level }) => level === 'warn')).toMatchObject([
    { message: 'an attempt of unlucky failed', fields: { ...fields, attempt: 1 } },
    { message: 'an attempt of unlucky failed', fields: { ...fields, attempt: 2 } },
  ]);
});

it('jobs that fail without ever starting are in the log, too', async () => {
  const startBefore = new Date(Date.now() + 3_000).toISOString();
  const { id } = await node.submit({ task: 'nobody-runs-it', startBefore });
  await node.ended(id);
  expect(about(id)).toMatchObject([{ fields: { code: 'EXPIRED', task: 'nobody-runs-it' } }]);
});

it('thousands of failures at once make a few lines and the number of the others', async () => {
  const doomed = task('doomed', { retry: { maxAttempts: 1 } }, () => {
    throw new PermanentError('as expected');
  });
  const tenant = node.newTenant();
  await tenant.work([doomed], { slots: 500 });
  await tenant.connect().submitMany(doomed, Array(3_000).fill(undefined));
  const of = `${tenant.tenant}/doomed`;
  const listed = () => log.lines.filter(({ fields }) => fields.task === 'doomed').length;
  const others = () =>
    log.lines.filter(({ fields }) => fields.of === of).map(({ fields }) => fields.count as number);
  await expect.poll(() => listed() + others().reduce((sum, count) => sum + count, 0)).toBe(3_000);
  expect(listed()).toBeLessThan(500);
});

it('a timeout has the same code whoever finds it out', async () => {
  const worker = await ProtocolWorker.register(node, { tasks: ['slow'] });
  const { id } = await node.submit({ task: 'slow', retry: { maxAttempts: 1 } });
  const { jobId, fence } = await worker.claimOne();
  await worker.report({ jobId, fence, outcome: 'timed-out' });
  expect((await node.ended(id)).error).toMatchObject({ code: 'TIMED_OUT' });
});

const PROGRAM = fileURLToPath(new URL('../programs/silent-partner.mjs', import.meta.url));

/** A program with a worker of the SDK, whose standard error is a pipe. */
function partner(...urls: readonly string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...urls], {
    env: { PATH: process.env.PATH, PUNCTUAL_API_KEY: node.apiKey },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  // Unlike `exit`, this comes after the last line of its standard error.
  const exited = once(child, 'close');
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: Record<string, unknown>[] = [];
  let rest = '';
  child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
    const [last, ...whole] = (rest + piece).split('\n').reverse();
    rest = last!;
    for (const line of whole.reverse()) lines.push(JSON.parse(line));
  });
  return { child, exited, lines, messages: () => lines.map(({ msg }) => msg) };
}

/** An address at which nobody listens. */
async function deadUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
}

it('a program whose worker reaches nobody says so by itself, with every address', async () => {
  const urls = [await deadUrl(), await deadUrl()];
  const { child, exited, lines } = partner(...urls);
  await expect
    .poll(() => lines.find(({ level }) => level === 40))
    .toMatchObject({
      worker: 'partner',
      urls,
      code: 'UNREACHABLE',
      why: urls.map((url) => expect.stringMatching(new RegExp(`^${url}: connect ECONNREFUSED`))),
      msg: expect.stringContaining('cannot be reached yet'),
    });
  child.stdin!.end();
  await exited;
  expect(lines.at(-1)).toMatchObject({ msg: 'stopped' });
});

it('a program whose standard error is closed goes on working', async () => {
  const { child, exited, messages } = partner(node.url);
  await expect.poll(messages).toContain('registered; waiting for jobs');
  child.stderr!.destroy();
  // Each failure is a line that nobody reads; then a job that succeeds.
  for (const why of ['first', 'second']) {
    const { id } = await node.submit({ task: 'fails', payload: { why }, retry: { maxAttempts: 1 } });
    expect(await node.ended(id)).toMatchObject({
      state: 'failed',
      error: { code: 'ON_PURPOSE', message: why },
    });
  }
  const { id } = await node.submit({ task: 'works', payload: 7 });
  expect(await node.ended(id)).toMatchObject({ state: 'succeeded', result: 7 } satisfies Partial<Job>);
  child.stdin!.end();
  expect(await exited).toEqual([0, null]);
});

import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { task } from '../../src/core/task.js';
import type { Page, StoredLogLine } from '../../src/core/wire.js';
import { createTestDatabase } from '../database.js';
import { Door, Happening } from '../happening.js';
import { nodeForTest, TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start({ settings: { maxLog: 4_096 } });
});
afterAll(() => node.stop());

/** A tenant of its own with a worker by hand. */
async function workerOf(tenant: string): Promise<ProtocolWorker> {
  return ProtocolWorker.register(node, {}, tenant);
}

const line = (message: string) => ({ at: '2030-01-01T00:00:00Z', level: 'info', message });

/** What the lines weigh as they are stored. */
const bytesOf = (lines: readonly StoredLogLine[]) =>
  lines.reduce((sum, { fence: _, ...each }) => sum + JSON.stringify(each).length, 0);

it('progress is seen while the job runs and stays after it', async () => {
  const tenant = 'progress';
  const reported = new Happening();
  const door = new Door();
  const slow = task('slow', async (_: null, ctx) => {
    await ctx.progress(0.5, 'half way');
    reported.happen();
    await door.opened;
  });
  await node.work([slow], { tenant });
  const { id } = await node.connect(tenant).submit(slow, null);
  await reported.times(1);
  expect(await node.job(id, tenant)).toMatchObject({
    state: 'running',
    progress: { progress: 0.5, message: 'half way', at: expect.any(String) },
  });
  door.open();
  expect(await node.ended(id, tenant)).toMatchObject({ state: 'succeeded', progress: { progress: 0.5 } });
});

it('log lines come back in order with level, time and attempt, page by page', async () => {
  const tenant = 'logs';
  const chatty = task('chatty', { retry: { backoff: { base: '1ms' } } }, (_: null, ctx) => {
    for (let n = 0; n < 10; n++) ctx.log.warn(`line ${n}`);
    if (ctx.attempt === 1) throw new Error('again');
  });
  await node.work([chatty], { tenant });
  const { id } = await node.connect(tenant).submit(chatty, null);
  await node.ended(id, tenant);
  const lines: StoredLogLine[] = [];
  for (let after: string | null = '0'; after !== null; ) {
    const page: Page<StoredLogLine> = await node.get('GET', `/v1/jobs/${id}/logs?limit=7&after=${after}`, {
      tenant,
    });
    lines.push(...page.data);
    after = page.next;
  }
  expect(lines.map(({ fence, message }) => [fence, message])).toEqual(
    [1, 2].flatMap((fence) => Array.from({ length: 10 }, (_, n) => [fence, `line ${n}`])),
  );
  expect(lines.every(({ level, at }) => level === 'warn' && !Number.isNaN(Date.parse(at)))).toBe(true);
});

it('a log ends at its limit and its job goes on', async () => {
  const tenant = 'log-limit';
  const worker = await workerOf(tenant);
  const { id } = await node.submit({ task: 'work' }, tenant);
  const job = await worker.claimOne();
  const lines = Array.from({ length: 10 }, () => line('x'.repeat(100)));
  for (let n = 0; n < 10; n++) {
    const { status } = await node.ask('POST', `/v1/jobs/${id}/logs`, { body: { fence: 1, lines }, tenant });
    expect(status).toBe(204);
  }
  const page = await node.get<Page<StoredLogLine>>('GET', `/v1/jobs/${id}/logs?limit=1000`, { tenant });
  expect(page.data.length).toBeGreaterThan(10);
  expect(bytesOf(page.data)).toBeLessThanOrEqual(4_096);
  expect(await worker.succeed(job)).toMatchObject({ accepted: [id] });
});

it('a log keeps to its limit when many write to it at once', async () => {
  const tenant = 'log-crowd';
  const worker = await workerOf(tenant);
  const { id } = await node.submit({ task: 'work' }, tenant);
  await worker.claimOne();
  const lines = Array.from({ length: 10 }, () => line('x'.repeat(100)));
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      node.ask('POST', `/v1/jobs/${id}/logs`, { body: { fence: 1, lines }, tenant }),
    ),
  );
  expect(answers.every(({ status }) => status === 204)).toBe(true);
  const page = await node.get<Page<StoredLogLine>>('GET', `/v1/jobs/${id}/logs?limit=1000`, { tenant });
  expect(bytesOf(page.data)).toBeLessThanOrEqual(4_096);
  expect(bytesOf(page.data)).toBeGreaterThan(3_500);
});

it('an attempt that is over can add nothing to the log and no progress', async () => {
  const tenant = 'late-log';
  const worker = await workerOf(tenant);
  const { id } = await node.submit({ task: 'work' }, tenant);
  await worker.succeed(await worker.claimOne());
  await node.ask('POST', `/v1/jobs/${id}/logs`, { body: { fence: 1, lines: [line('late')] }, tenant });
  expect((await node.get<Page<StoredLogLine>>('GET', `/v1/jobs/${id}/logs`, { tenant })).data).toEqual([]);
  expect(
    await node.ask('POST', `/v1/jobs/${id}/progress`, { body: { fence: 1, progress: 1 }, tenant }),
  ).toMatchObject({ status: 409, body: { code: 'STALE_FENCE' } });
  expect(await node.job(id, tenant)).toMatchObject({ progress: null });
});

it('whoever waits for a job is answered when it ends, and not before', async () => {
  const tenant = 'wait';
  const worker = await workerOf(tenant);
  const { id } = await node.submit({ task: 'work' }, tenant);
  const job = await worker.claimOne();
  let answered = 0;
  const waiting = Array.from({ length: 5 }, async () => {
    const ended = await node.get<Job>('GET', `/v1/jobs/${id}?wait=30s`, { tenant });
    answered += 1;
    return ended;
  });
  expect(await node.get('GET', `/v1/jobs/${id}?wait=50ms`, { tenant })).toMatchObject({ state: 'running' });
  expect(answered).toBe(0);
  await worker.succeed(job, 'here');
  for (const ended of await Promise.all(waiting)) {
    expect(ended).toMatchObject({ state: 'succeeded', result: 'here' });
  }
  expect(await node.get('GET', `/v1/jobs/${id}?wait=30s`, { tenant })).toMatchObject({ state: 'succeeded' });
});

it('a wait does not end with an attempt that is followed by another', async () => {
  const tenant = 'wait-retry';
  const worker = await workerOf(tenant);
  const { id } = await node.submit({ task: 'work', retry: { backoff: { base: '1ms' } } }, tenant);
  const job = await worker.claimOne();
  const waiting = node.get<Job>('GET', `/v1/jobs/${id}?wait=30s`, { tenant });
  await worker.fail(job);
  await worker.succeed(await worker.claimOne(), 'second');
  expect(await waiting).toMatchObject({ state: 'succeeded', result: 'second', attempt: 2 });
});

it('a worker that wants no tokens gets none, and reports under its own key', async () => {
  const tenant = 'tokenless';
  const worker = await ProtocolWorker.register(node, { tokens: false }, tenant);
  const { id } = await node.submit({ task: 'work' }, tenant);
  const job = await worker.claimOne();
  expect(job).not.toHaveProperty('token');
  const report = { tenant, body: { fence: job.fence, progress: 0.5 } };
  expect((await node.ask('POST', `/v1/jobs/${id}/progress`, report)).status).toBe(204);
  await worker.succeed(job);
  expect(await node.job(id, tenant)).toMatchObject({ state: 'succeeded', progress: { progress: 0.5 } });
});

it("an attempt's token reports about its own job and opens nothing else", async () => {
  const tenant = 'token';
  const worker = await workerOf(tenant);
  const { id } = await node.submit({ task: 'work', priority: 9 }, tenant);
  const other = await node.submit({ task: 'work' }, tenant);
  const token = (await worker.claimOne()).token!;
  const ask = (method: string, path: string, body?: unknown) =>
    node.ask(method, path, { key: token, ...(body !== undefined && { body }) });

  expect((await ask('POST', `/v1/jobs/${id}/progress`, { fence: 1, progress: 0.1 })).status).toBe(204);
  expect((await ask('POST', `/v1/jobs/${id}/logs`, { fence: 1, lines: [line('hi')] })).status).toBe(204);
  const refused = [
    await ask('POST', `/v1/jobs/${other.id}/complete`, { fence: 1 }),
    await ask('POST', `/v1/jobs/${other.id}/logs`, { fence: 1, lines: [] }),
    await ask('GET', `/v1/jobs/${id}`),
    await ask('GET', `/v1/jobs/${id}/logs`),
    await ask('POST', `/v1/jobs/${id}/cancel`),
    await ask('GET', '/v1/jobs'),
    await ask('POST', '/v1/jobs', { task: 'work' }),
    await ask('GET', '/v1/cluster'),
    await ask('GET', '/metrics'),
  ];
  expect(refused.map(({ status, body }) => [status, body.code])).toEqual(
    refused.map(() => [403, 'FORBIDDEN']),
  );
  expect(await ask('POST', `/v1/jobs/${id}/complete`, { fence: 2 })).toMatchObject({
    status: 409,
    body: { code: 'STALE_FENCE' },
  });
  // A token says whom it is for; a tenant in a header does not change that.
  const complete = await node.ask('POST', `/v1/jobs/${id}/complete`, {
    key: token,
    tenant: 'someone-else',
    body: { fence: 1, result: { by: 'token' } },
  });
  expect(complete.status).toBe(204);
  expect(await node.job(id, tenant)).toMatchObject({ state: 'succeeded', result: { by: 'token' } });
});

it('the token of an attempt that was followed by another counts no more', async () => {
  const tenant = 'old-token';
  const worker = await workerOf(tenant);
  const { id } = await node.submit({ task: 'work', retry: { backoff: { base: '1ms' } } }, tenant);
  const first = await worker.claimOne();
  await worker.fail(first);
  const second = await worker.claimOne();
  for (const fence of [1, 2]) {
    expect(
      await node.ask('POST', `/v1/jobs/${id}/complete`, { key: first.token!, body: { fence } }),
    ).toMatchObject({ status: 409, body: { code: 'STALE_FENCE' } });
  }
  expect(await node.job(id, tenant)).toMatchObject({ state: 'running', fence: 2 });
  expect(
    (
      await node.ask('POST', `/v1/jobs/${id}/fail`, {
        key: second.token!,
        body: { fence: 2, error: { message: 'by token', code: 'X' }, retryable: false },
      })
    ).status,
  ).toBe(204);
  expect(await node.job(id, tenant)).toMatchObject({
    state: 'failed',
    error: { message: 'by token', code: 'X' },
  });
});

it('a token that was tampered with is no credential', async () => {
  const tenant = 'tampered';
  const worker = await workerOf(tenant);
  const { id } = await node.submit({ task: 'work' }, tenant);
  const { token } = await worker.claimOne();
  const [header, body, signature] = token!.split('.') as [string, string, string];
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
  const forged = Buffer.from(JSON.stringify({ ...claims, fence: 2 })).toString('base64url');
  for (const key of [`${header}.${forged}.${signature}`, `${header}.${body}.`, `${header}.${body}`]) {
    expect(await node.ask('POST', `/v1/jobs/${id}/complete`, { key, body: { fence: 2 } })).toMatchObject({
      status: 401,
      body: { code: 'UNAUTHENTICATED' },
    });
  }
});

it('a token is taken until shortly after its attempt must have ended, and then no more', async () => {
  const clock = new TestClock();
  const still = await nodeForTest({ clock });
  const worker = await ProtocolWorker.register(still);
  const { id } = await still.submit({ task: 'work', timeout: '10m', delivery: 'at-most-once' });
  const { token, fence } = await worker.claimOne();
  const complete = (key: string) => still.ask('POST', `/v1/jobs/${id}/complete`, { key, body: { fence } });
  clock.advance(25 * 60_000);
  expect(await still.ended(id)).toMatchObject({ state: 'failed', attempts: [{ outcome: 'lost' }] });
  // It is genuine; what it reports came too late all the same.
  expect(await complete(token!)).toMatchObject({ status: 409, body: { code: 'STALE_FENCE' } });
  clock.advance(11_000);
  expect(await complete(token!)).toMatchObject({ status: 401, body: { code: 'UNAUTHENTICATED' } });
  expect(await complete(still.apiKey)).toMatchObject({ status: 409, body: { code: 'STALE_FENCE' } });
});

it('a late result counts under the key of its worker, however long there was no leader', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const clock = new TestClock();
  const settings = { maxJobTimeout: '1d' };
  const before = await nodeForTest({ clock, database, settings });
  const { id } = await before.submit({ task: 'work', timeout: '1d', delivery: 'at-most-once' });
  const worker = await ProtocolWorker.register(before);
  const job = await worker.claimOne();
  await before.node.stop();
  clock.advance(20 * 3_600_000);
  await nodeForTest({ clock, database, settings: { ...settings, port: before.node.port } });
  expect(await worker.succeed(job, 'late')).toMatchObject({ accepted: [id] });
});

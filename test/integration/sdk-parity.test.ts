import type pg from 'pg';
import { afterAll, beforeAll, it } from 'vitest';
import { schedule } from '../../src/client/schedules-as-code.js';
import { task } from '../../src/core/task.js';
import type { ScheduleView } from '../../src/core/wire.js';
import { Happening } from '../happening.js';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';

/** One node for all; each test has a tenant of its own. */
let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const double = task('double', (n: number) => n * 2);

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

it.concurrent('a program lists, changes and steers jobs', async ({ expect }) => {
  const tenant = 'steering';
  const punctual = node.connect(tenant);
  const far = { runAt: new Date(Date.UTC(2099, 0)), queue: 'far' };
  const jobs = await punctual.submitMany(double, [1, 2, 3], far);
  const newestFirst = jobs.map(({ id }) => id).reverse();
  const listed = await all(punctual.list({ queue: 'far', pageSize: 2, include: ['payload'] }));
  expect(listed.map(({ id }) => id)).toEqual(newestFirst);
  expect(listed[0]).toMatchObject({ payload: 3, state: 'pending' });
  expect(await all(punctual.list({ queue: 'far', state: 'failed' }))).toEqual([]);

  const [first, second, third] = jobs;
  expect(await punctual.hold(first!.id)).toMatchObject({ hold: true });
  await expect(first!.hold()).rejects.toMatchObject({ code: 'JOB_HELD' });
  expect(await first!.release()).toMatchObject({ hold: false });
  const runAt = new Date(Date.UTC(2098, 0));
  expect(await punctual.change(first!.id, { runAt, priority: 9, payload: 10 })).toMatchObject({
    ...{ runAt: runAt.toISOString(), priority: 9, payload: 10 },
  });
  expect(await second!.cancel()).toMatchObject({ state: 'cancelled' });
  expect(await third!.change({ runAt: new Date() })).toMatchObject({ state: 'pending' });
  expect((await all(punctual.queues())).map(({ name }) => name)).toContain('far');
  expect(await punctual.stats({ history: '1m' })).toMatchObject({ history: expect.any(Array) });
});

it.concurrent('a program reads logs, and runs again what has failed', async ({ expect }) => {
  const tenant = 'failing';
  const punctual = node.connect(tenant);
  let broken = true;
  const fragile = task('fragile', { retry: { maxAttempts: 1 } }, (n: number, ctx) => {
    ctx.log(`number ${n}`);
    if (broken) throw new Error('broken');
    return n;
  });
  await node.work([fragile], { tenant });
  const jobs = await punctual.submitMany(fragile, [1, 2, 3]);
  for (const job of jobs) await expect(job.result()).rejects.toMatchObject({ code: 'JOB_UNSUCCESSFUL' });
  const failed = await all(punctual.list({ state: 'failed', task: 'fragile' }));
  expect(failed).toHaveLength(3);
  broken = false;
  await jobs[0]!.retry();
  expect(await jobs[0]!.result()).toBe(1);
  expect(await punctual.redrive({ task: 'fragile', dryRun: true })).toMatchObject({
    matched: 2,
    redriven: 0,
  });
  expect(await punctual.redrive({ task: 'fragile' })).toMatchObject({ matched: 2, redriven: 2 });
  expect(await Promise.all(jobs.map((job) => job.result()))).toEqual([1, 2, 3]);
  // Lines are sent beside the report, so they may arrive a little later than the end of the job.
  const messages = async () => (await all(jobs[0]!.logs({ pageSize: 1 }))).map(({ message }) => message);
  await expect.poll(messages).toEqual(['number 1', 'number 1']);
});

it.concurrent('a job is cancelled by its key', async ({ expect }) => {
  const punctual = node.connect('by-key');
  const job = await punctual.submit(double, 1, { delay: '1d', key: 'order-42' });
  expect(await punctual.cancel({ key: 'order-42' })).toMatchObject({ id: job.id, state: 'cancelled' });
  await expect(punctual.cancel({ key: 'order-43' })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
});

/** Runs something inside a transaction of its own and ends it as told. */
function inTransaction<T>(end: 'COMMIT' | 'ROLLBACK', work: (tx: pg.Client) => Promise<T>): Promise<T> {
  return withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    const value = await work(client);
    await client.query(end);
    return value;
  });
}

it.concurrent('a cancel inside a transaction counts when that commits, waiting or running', async ({
  expect,
}) => {
  const tenant = 'tx-cancel';
  const punctual = node.connect(tenant);
  const started = new Happening<string>();
  const endless = task('endless', async (_: unknown, ctx) => {
    started.happen(ctx.jobId);
    await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)));
  });
  await node.work([endless], { tenant });
  const running = await punctual.submit(endless);
  await started.times(1);
  const waiting = await punctual.submit(double, 1, { delay: '1h', key: 'waiting' });
  const kept = await punctual.submit(double, 1, { delay: '1h', key: 'kept' });
  await inTransaction('ROLLBACK', (tx) => punctual.cancel({ key: 'kept' }, { tx }));
  await inTransaction('COMMIT', async (tx) => {
    await punctual.cancel(running.id, { tx });
    await punctual.cancel({ key: 'waiting' }, { tx });
    await expect(punctual.cancel({ key: 'nobody' }, { tx })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    expect(await waiting.get()).toMatchObject({ state: 'pending' });
  });
  for (const job of [running, waiting]) {
    await expect(job.result()).rejects.toMatchObject({ job: { state: 'cancelled' } });
  }
  expect(await kept.get()).toMatchObject({ state: 'pending' });
  // Every request that was carried out is gone, also about jobs that had ended before or are of another tenant.
  const stranger = node.connect('tx-stranger');
  await inTransaction('COMMIT', async (tx) => {
    await punctual.cancel(running.id, { tx });
    await stranger.cancel(kept.id, { tx });
  });
  const left = () =>
    withClient(node.database.url, async (client) => {
      const { rows } = await client.query(
        `SELECT count(*)::int AS n FROM punctual.cancel_requests WHERE tenant LIKE 'tx-%'`,
      );
      return rows[0].n;
    });
  await expect.poll(left).toBe(0);
  expect(await kept.get()).toMatchObject({ state: 'pending' });
});

it.concurrent('what a transaction submits and cancels never starts', async ({ expect }) => {
  const tenant = 'tx-both';
  const punctual = node.connect(tenant);
  const ran: number[] = [];
  const note = task('note', (n: number) => void ran.push(n));
  await node.work([note], { tenant });
  const [byId, byKey, kept] = await inTransaction('COMMIT', async (tx) => {
    const jobs = [
      await punctual.submit(note, 1, { tx }),
      await punctual.submit(note, 2, { tx, key: 'second' }),
      await punctual.submit(note, 3, { tx }),
    ] as const;
    await tx.query('SAVEPOINT here');
    await punctual.cancel(jobs[0].id, { tx });
    await punctual.cancel({ key: 'second' }, { tx });
    await node.connect('tx-stranger').cancel(jobs[2].id, { tx });
    return jobs;
  });
  await kept.result();
  for (const job of [byId, byKey]) {
    await expect(job.result()).rejects.toMatchObject({
      job: { state: 'cancelled', task: 'note', attempt: 0, error: null },
    });
  }
  expect(ran).toEqual([3]);
});

it.concurrent('a cancel by key also reaches a job that takes the key over in the same transaction', async ({
  expect,
}) => {
  const tenant = 'tx-over';
  const punctual = node.connect(tenant);
  const ran: number[] = [];
  const started = new Happening<string>();
  const note = task('note', (n: number) => void ran.push(n));
  const endless = task('endless', async (_: unknown, ctx) => {
    started.happen(ctx.jobId);
    await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)));
  });
  await node.work([note, endless], { tenant });
  await (await punctual.submit(note, 1, { key: 'ended' })).result();
  const running = await punctual.submit(endless, undefined, { key: 'running' });
  await started.times(1);
  const over = await inTransaction('COMMIT', async (tx) => {
    const jobs = [
      await punctual.submit(note, 2, { tx, key: 'ended', keyMode: 'reuse-when-ended' }),
      await punctual.submit(note, 3, { tx, key: 'ended', keyMode: 'throttle', keyWindow: '1ms' }),
      await punctual.submit(note, 4, { tx, key: 'running', keyMode: 'debounce', keyWindow: '1ms' }),
    ];
    await punctual.cancel({ key: 'ended' }, { tx });
    await punctual.cancel({ key: 'running' }, { tx });
    return jobs;
  });
  for (const { id } of [...over, running]) {
    expect(await node.ended(id, tenant)).toMatchObject({ state: 'cancelled' });
  }
  // A key whose job has ended is still a known one.
  await inTransaction('COMMIT', (tx) => punctual.cancel({ key: 'ended' }, { tx }));
  expect(ran).toEqual([1]);
});

const nightly = schedule(double, { name: 'nightly', cron: '30 2 * * *', input: 1 });
const hourly = schedule(double, { name: 'hourly', every: '1h', input: 2, catchUp: { within: '6h' } });

async function versions(tenant: string): Promise<Record<string, number>> {
  const { data } = await node.get<{ data: ScheduleView[] }>('GET', '/v1/schedules', { tenant });
  return Object.fromEntries(data.map(({ name, version }) => [name, version]));
}

it.concurrent('schedules in code: what differs is written, what left the code is removed', async ({
  expect,
}) => {
  const tenant = 'as-code';
  const punctual = node.connect(tenant);
  const options = { owner: 'orders', prune: true };
  await punctual.schedule(double, { name: 'by-hand', every: '1h', input: 1 });
  await punctual.schedules([schedule(double, { name: 'other', every: '1h', input: 1 })], { owner: 'other' });

  // Two instances start at the same time.
  const starts = await Promise.all([1, 2].map(() => punctual.schedules([nightly, hourly], options)));
  for (const { removed } of starts) expect(removed).toEqual([]);
  // Each of them tells what it has done itself.
  expect(starts.flatMap(({ created }) => created).sort()).toEqual(['hourly', 'nightly']);
  expect(starts.flatMap(({ changed }) => changed)).toEqual([]);
  expect(await versions(tenant)).toEqual({ 'by-hand': 1, hourly: 1, nightly: 1, other: 1 });
  const none = { created: [], changed: [], removed: [], more: false, dryRun: false };
  expect(await punctual.schedules([nightly, hourly], options)).toEqual({ ...none, unchanged: 2 });
  expect(await versions(tenant)).toEqual({ 'by-hand': 1, hourly: 1, nightly: 1, other: 1 });

  const later = [
    schedule(double, { name: 'nightly', cron: '0 3 * * *', input: 1 }),
    schedule(double, { name: 'weekly', cron: '@weekly', input: 1 }),
  ];
  const told = { created: ['weekly'], changed: ['nightly'], removed: ['hourly'], unchanged: 0, more: false };
  expect(await punctual.schedules(later, { ...options, dryRun: true })).toEqual({ ...told, dryRun: true });
  expect(await versions(tenant)).toEqual({ 'by-hand': 1, hourly: 1, nightly: 1, other: 1 });
  expect(await punctual.schedules(later, options)).toEqual({ ...told, dryRun: false });
  expect(await versions(tenant)).toEqual({ 'by-hand': 1, nightly: 2, other: 1, weekly: 1 });

  // What somebody changed by hand is as in the code again after the next start; a pause stays.
  const changed = { body: { cron: '0 4 * * *' }, tenant };
  await node.get('PATCH', '/v1/schedules/nightly', changed);
  await node.get('POST', '/v1/schedules/nightly/pause', { tenant });
  expect(await punctual.schedules(later, options)).toMatchObject({ changed: ['nightly'], unchanged: 1 });
  expect(await node.get('GET', '/v1/schedules/nightly', { tenant })).toMatchObject({
    ...{ cron: '0 3 * * *', paused: true, managedBy: 'orders' },
  });
  // Without prune nothing is removed.
  expect(await punctual.schedules([], { owner: 'orders' })).toEqual({ ...none, unchanged: 0 });
  const ends = await Promise.all([1, 2].map(() => punctual.schedules([], options)));
  expect(ends.flatMap(({ removed }) => removed).sort()).toEqual(['nightly', 'weekly']);
  expect(await versions(tenant)).toEqual({ 'by-hand': 1, other: 1 });
});

it.concurrent('schedules in code: those of others are not touched, and a wrong one stops all', async ({
  expect,
}) => {
  const tenant = 'as-code-refused';
  const punctual = node.connect(tenant);
  await punctual.schedules([nightly], { owner: 'orders' });
  await expect(punctual.schedules([hourly, nightly], { owner: 'mails' })).rejects.toMatchObject({
    code: 'SCHEDULE_MANAGED',
    message: expect.stringContaining('nightly is managed by orders'),
  });
  const wrong = schedule(double, { name: 'wrong', cron: '0 0 30 2 *', input: 1 });
  await expect(punctual.schedules([hourly, wrong, hourly], { owner: 'orders' })).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
    errors: [{ pointer: expect.stringMatching(/^\/schedules\/1\/cron/) }, { pointer: '/schedules/2/name' }],
  });
  expect(await versions(tenant)).toEqual({ nightly: 1 });
});

it.concurrent('schedules in code: one that was made by hand becomes what the code says, and is never removed', async ({
  expect,
}) => {
  const tenant = 'as-code-by-hand';
  const punctual = node.connect(tenant);
  const options = { owner: 'orders', prune: true };
  await punctual.schedule(double, { name: 'hourly', every: '2h', input: 2 });
  expect(await punctual.schedules([hourly], options)).toMatchObject({ changed: ['hourly'] });
  expect(await node.get('GET', '/v1/schedules/hourly', { tenant })).toMatchObject({
    ...{ every: '1h', managedBy: null },
  });
  expect(await punctual.schedules([hourly], options)).toMatchObject({ changed: [], unchanged: 1 });
  expect(await punctual.schedules([], options)).toMatchObject({ removed: [] });
  expect(await versions(tenant)).toEqual({ hourly: 2 });
});

it.concurrent('the ledger of a schedule is read page by page, also after the schedule is gone', async ({
  expect,
}) => {
  const tenant = 'ledger';
  const punctual = node.connect(tenant);
  await node.work([double], { tenant });
  const handle = await punctual.schedule(double, { name: 'rare', cron: '0 0 1 1 *', input: 1 });
  for (let run = 0; run < 3; run++) await (await handle.run()).result();
  await handle.delete();
  const found = await all(punctual.occurrences('rare', { pageSize: 2 }));
  expect(found.map(({ reason }) => reason)).toEqual(['manual', 'manual', 'manual']);
  const past = { from: new Date(0), to: new Date(1) };
  expect(await all(punctual.occurrences('rare', past))).toEqual([]);
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { PermanentError, task } from '../../src/core/task.js';
import { uuidTime } from '../../src/core/uuid.js';
import type { ClusterView, ManyJobsAnswer, Page } from '../../src/core/wire.js';
import type { Punctual } from '../../src/sdk/punctual.js';
import { type ApiUser, nodeForTest, TestNode, type TestTenant } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** One node for all; each test has a tenant of its own. */
let shared: TestNode;

beforeAll(async () => {
  shared = await TestNode.start({ settings: { workerTimeout: '2d' } });
});
afterAll(() => shared.stop());

const MISSING = '01890000-0000-7000-8000-000000000000';

const change = (node: ApiUser, verb: string, body: unknown) =>
  node.get<ManyJobsAnswer>('POST', `/v1/jobs/${verb}`, { body });

async function submitAll(node: ApiUser, jobs: readonly Record<string, unknown>[]): Promise<string[]> {
  return (await node.get<{ ids: string[] }>('POST', '/v1/jobs/bulk', { body: { jobs } })).ids;
}

const copies = (count: number, job: Record<string, unknown>) => Array.from({ length: count }, () => job);

async function allJobs(node: ApiUser): Promise<Job[]> {
  const jobs: Job[] = [];
  let after = '';
  do {
    const page: Page<Job> = await node.get('GET', `/v1/jobs?limit=1000${after && `&after=${after}`}`);
    jobs.push(...page.data);
    after = page.next ?? '';
  } while (after !== '');
  return jobs;
}

/** How many jobs of the tenant are in which state. */
async function statesOf(node: ApiUser): Promise<Record<string, number>> {
  const states: Record<string, number> = {};
  for (const { state } of await allJobs(node)) states[state] = (states[state] ?? 0) + 1;
  return states;
}

/** Jobs that have failed for good. */
async function failAll(node: TestTenant, jobs: readonly Record<string, unknown>[]): Promise<string[]> {
  const worker = await ProtocolWorker.register(node, { slots: 1_000 });
  const ids = await submitAll(
    node,
    jobs.map((job) => ({ ...job, task: 'work', retry: { maxAttempts: 1 } })),
  );
  for (let left = ids.length; left > 0; ) {
    const claimed = await worker.claim(left);
    const error = { message: 'no', code: 'GONE' };
    await worker.report(
      ...claimed.map(({ jobId, fence }) => ({ jobId, fence, outcome: 'failed' as const, error })),
    );
    left -= claimed.length;
  }
  await node.get('DELETE', `/v1/workers/${worker.id}`, { body: { settled: true } });
  return ids;
}

async function epochOf(node: TestNode): Promise<number> {
  return (await node.get<ClusterView>('GET', '/v1/cluster')).shards[0]!.epoch!;
}

it('jobs are cancelled by a filter wherever they are, after a dry run that changes nothing', async () => {
  const node = shared.newTenant();
  const other = shared.newTenant();
  const worker = await ProtocolWorker.register(node, { queues: ['mail'] });
  const running = await node.submit({ task: 'work', queue: 'mail' });
  await worker.claimOne();
  const waiting = await submitAll(node, [
    { task: 'nobody', queue: 'mail' },
    { task: 'nobody', queue: 'mail', delay: '2h' },
    { task: 'nobody', queue: 'mail', hold: true },
  ]);
  const { id: raw } = await withClient(shared.database.url, async (client) => {
    const submission = { task: 'nobody', queue: 'mail', payload: 1 };
    const sql = 'SELECT punctual.submit_job($1, $2::json) AS id';
    return (await client.query(sql, [node.tenant, JSON.stringify(submission)])).rows[0];
  });
  const spared = await node.submit({ task: 'nobody', queue: 'other' });
  const foreign = await other.submit({ task: 'nobody', queue: 'mail' });

  const filter = { queue: 'mail' };
  expect(await change(node, 'cancel', { filter, dryRun: true })).toEqual({
    ...{ matched: 5, changed: 0, dryRun: true, more: false, next: null, refused: [] },
  });
  expect(await statesOf(node)).toEqual({ pending: 5, running: 1 });
  expect(await change(node, 'cancel', { filter })).toEqual({
    ...{ matched: 5, changed: 5, dryRun: false, more: false, next: null, refused: [] },
  });
  for (const id of [...waiting, raw]) expect(await node.job(id)).toMatchObject({ state: 'cancelled' });
  expect(await worker.heartbeat()).toMatchObject({ stop: [{ jobId: running.id, fence: 1 }] });
  expect(await node.job(spared.id)).toMatchObject({ state: 'pending' });
  expect(await other.job(foreign.id)).toMatchObject({ state: 'pending' });
});

it('a call with a limit changes about so many jobs, and the next one goes on', async () => {
  const node = shared.newTenant();
  await submitAll(node, copies(1_200, { task: 'nobody' }));
  const parts: number[] = [];
  let after: string | null = null;
  do {
    const body = { all: true, limit: 500, ...(after !== null && { after }) };
    const answer: ManyJobsAnswer = await change(node, 'cancel', body);
    parts.push(answer.changed);
    after = answer.next;
  } while (after !== null);
  expect(parts.filter((changed) => changed > 0)).toEqual([500, 500, 200]);
  expect(await statesOf(node)).toEqual({ cancelled: 1_200 });
  const refused = await node.ask('POST', '/v1/jobs/cancel', { body: { all: true, limit: 0 } });
  expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: '/limit' }] } });
});

it('those who ask for waiting jobs never stop a running one', async () => {
  const node = shared.newTenant();
  const worker = await ProtocolWorker.register(node);
  const running = await node.submit({ task: 'work' });
  await worker.claimOne();
  await submitAll(node, copies(2, { task: 'nobody' }));
  expect(await change(node, 'cancel', { filter: { state: 'pending' } })).toMatchObject({ changed: 2 });
  expect(await worker.heartbeat()).toMatchObject({ stop: [] });
  expect(await change(node, 'cancel', { filter: { worker: worker.id } })).toMatchObject({ changed: 1 });
  expect(await worker.heartbeat()).toMatchObject({ stop: [{ jobId: running.id }] });
});

it('a tenant has two counts at a time, and others count all the same', async () => {
  const [node, other] = [shared.newTenant(), shared.newTenant()];
  await submitAll(node, copies(3, { task: 'nobody' }));
  const count = (tenant: ApiUser) =>
    tenant.ask<ManyJobsAnswer>('POST', '/v1/jobs/cancel', { body: { dryRun: true } });
  await withClient(shared.database.url, async (client) => {
    await client.query('BEGIN; LOCK TABLE punctual.later IN ACCESS EXCLUSIVE MODE');
    const first = [count(node), count(node), count(node)];
    expect(await Promise.race(first)).toMatchObject({ status: 503, body: { code: 'TOO_BUSY' } });
    const foreign = count(other);
    await client.query('COMMIT');
    await Promise.all(first);
    expect(await foreign).toMatchObject({ status: 200, body: { matched: 0 } });
  });
  expect(await count(node)).toMatchObject({ status: 200, body: { matched: 3 } });
});

it('jobs are held and released, now or in the far future', async () => {
  const node = shared.newTenant();
  const [near, far] = await submitAll(node, [{ task: 'work' }, { task: 'work', delay: '2h' }]);
  expect(await change(node, 'hold', { all: true })).toMatchObject({ matched: 2, changed: 2 });
  await submitAll(node, [{ task: 'nobody' }]);
  expect(await change(node, 'hold', { all: true, dryRun: true })).toMatchObject({ matched: 1 });
  expect(await change(node, 'hold', { ids: [near, far] })).toMatchObject({
    ...{ matched: 0, changed: 0, refused: [{ code: 'JOB_HELD' }, { code: 'JOB_HELD' }] },
  });
  const worker = await ProtocolWorker.register(node);
  await worker.claimNothing();
  expect(await change(node, 'release', { filter: { task: 'work' } })).toMatchObject({ changed: 2 });
  expect(await worker.claimOne()).toMatchObject({ jobId: near });
  expect(await node.job(far!)).toMatchObject({ state: 'pending', hold: false });
  await worker.claimNothing();
});

it('of jobs that are named, each that cannot be changed is told with the reason', async () => {
  const node = shared.newTenant();
  const foreign = await shared.newTenant().submit({ task: 'work' });
  const [failed] = await failAll(node, [{}]);
  const [one, two] = await submitAll(node, copies(2, { task: 'nobody' }));
  const ids = [one, failed, MISSING, foreign.id, two, one];
  const refused = [
    { id: failed, code: 'JOB_ENDED', detail: expect.stringContaining(failed!) },
    { id: MISSING, code: 'JOB_NOT_FOUND', detail: `There is no job ${MISSING}.` },
    { id: foreign.id, code: 'JOB_NOT_FOUND' },
  ];
  const byId = (a: { id?: unknown }, b: { id?: unknown }) => String(a.id).localeCompare(String(b.id));
  for (const dryRun of [true, false]) {
    const answer = await change(node, 'cancel', { ids, dryRun });
    expect(answer).toMatchObject({ matched: 2, changed: dryRun ? 0 : 2, next: null });
    expect([...answer.refused].sort(byId)).toMatchObject([...refused].sort(byId));
  }
  expect(await change(node, 'delete', { ids: [one] })).toMatchObject({ changed: 1, refused: [] });
});

it.each([
  ['nothing', {}, '/all'],
  ['an empty filter', { filter: {} }, '/all'],
  ['everything and a filter', { all: true, filter: { task: 'a' } }, '/all'],
  ['everything and ids', { all: true, ids: [MISSING] }, '/all'],
  ['no ids', { ids: [] }, '/ids'],
  ['too many ids', { ids: copies(1_001, {}).map(() => MISSING) }, '/ids'],
  ['an id that is none', { ids: ['42'] }, '/ids/0'],
  ['an unknown filter', { filter: { colour: 'red' } }, '/filter/colour'],
  ['a time that is none', { filter: { since: 'yesterday' } }, '/filter/since'],
  ['a place where no answer ended', { all: true, after: 'x' }, '/after'],
])('%s is no choice of jobs', async (_, body, pointer) => {
  const node = shared.newTenant();
  await node.submit({ task: 'nobody' });
  for (const verb of ['cancel', 'hold', 'release', 'redrive', 'delete']) {
    const answer = await node.ask<{ errors: unknown[] }>('POST', `/v1/jobs/${verb}`, { body });
    expect([verb, answer.status, answer.body.errors[0]]).toMatchObject([verb, 422, { pointer }]);
  }
  expect(await statesOf(node)).toEqual({ pending: 1 });
});

it('a state in which jobs cannot be changed in this way is refused', async () => {
  const node = shared.newTenant();
  for (const [verb, state] of [
    ...[['cancel', 'failed'] as const, ['hold', 'running'] as const, ['release', 'succeeded'] as const],
    ...[['redrive', 'succeeded'] as const, ['delete', 'pending'] as const],
  ]) {
    const answer = await node.ask('POST', `/v1/jobs/${verb}`, { body: { filter: { state } } });
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer: '/filter/state' }] } });
  }
});

it('deleted jobs are gone with their keys and logs; those that have not ended are refused', async () => {
  const node = shared.newTenant();
  const talk = task('talk', (_: null, ctx) => ctx.log('something'));
  await node.work([talk]);
  const punctual = node.connect();
  const ended = await punctual.submit(talk, null, { key: 'k' });
  await ended.result();
  const waiting = await node.submit({ task: 'nobody', key: 'w' });
  const logs = `/v1/jobs/${ended.id}/logs`;
  await expect.poll(async () => (await node.get<Page<unknown>>('GET', logs)).data.length).toBe(1);

  expect(await punctual.deleteMany({ ids: [ended.id, waiting.id] })).toEqual({
    ...{ matched: 1, changed: 1, more: false },
    refused: [{ id: waiting.id, code: 'JOB_NOT_ENDED', detail: expect.stringContaining('cancel it first') }],
  });
  expect((await node.ask('GET', `/v1/jobs/${ended.id}`)).status).toBe(404);
  await withClient(shared.database.url, async (client) => {
    const { rows } = await client.query('SELECT 1 FROM punctual.job_logs WHERE job = $1', [ended.id]);
    expect(rows).toEqual([]);
  });
  const again = await punctual.submit(talk, null, { key: 'k' });
  expect(again.id).not.toBe(ended.id);
  await again.result();
  expect(await node.submit({ task: 'nobody', key: 'w' })).toMatchObject({ id: waiting.id });
  expect(await punctual.deleteMany({ filter: { key: 'k' } })).toMatchObject({ changed: 1 });
  expect(await punctual.deleteMany({ filter: { key: 'k' } })).toMatchObject({ matched: 0, changed: 0 });
  expect(await punctual.deleteMany({ all: true })).toMatchObject({ matched: 0 });
});

it('jobs are found by when they were created and by how they failed', async () => {
  const node = shared.newTenant();
  const broken = task('broken', ({ code }: { code: string }) => {
    throw new PermanentError(`"${code}" is not there`, { code });
  });
  await node.work([broken]);
  const punctual = node.connect();
  const codes = ['GONE', 'LOST KEY', 'é"\\'];
  const handles = await punctual.submitMany(
    broken,
    codes.map((code) => ({ code })),
  );
  const jobs = await Promise.all(handles.map(({ id }) => node.ended(id)));
  const pending = await node.submit({ task: 'nobody' });
  const list = async (query: Record<string, string>) => {
    const page = await node.get<Page<Job>>('GET', `/v1/jobs?${new URLSearchParams(query)}`);
    return page.data.map(({ id }) => id);
  };
  for (const [n, code] of codes.entries()) {
    expect(await list({ errorCode: code })).toEqual([jobs[n]!.id]);
    expect(await list({ errorCode: code, state: 'failed', task: 'broken' })).toEqual([jobs[n]!.id]);
  }
  expect(await list({ errorCode: 'GON' })).toEqual([]);
  expect(await list({ errorCode: 'GONE', state: 'pending' })).toEqual([]);
  expect(await list({ since: '1h' })).toHaveLength(4);
  expect(await list({ until: '1h' })).toEqual([]);
  const created = new Date(uuidTime(pending.id)).toISOString();
  expect(await list({ since: created })).toContain(pending.id);
  expect(await list({ until: created })).not.toContain(pending.id);
  expect(await list({ since: new Date(Date.parse(created) + 1).toISOString() })).toEqual([]);

  expect(await punctual.retryMany({ filter: { errorCode: 'LOST KEY' } })).toMatchObject({ changed: 1 });
  expect(await node.ended(jobs[1]!.id)).toMatchObject({ attempt: 2 });
  expect((await node.job(jobs[0]!.id)).attempt).toBe(1);
  const since = new Date(jobs[0]!.createdAt);
  expect(await punctual.deleteMany({ filter: { since } }, { dryRun: true })).toMatchObject({ matched: 3 });
});

it('cancelled jobs run again when they are named, or when their state is', async () => {
  const node = shared.newTenant();
  const ids = await submitAll(node, copies(3, { task: 'work' }));
  await change(node, 'cancel', { all: true });
  expect(await change(node, 'redrive', { all: true })).toMatchObject({ matched: 0, redriven: 0 });
  expect(await change(node, 'redrive', { ids: ids.slice(0, 1) })).toMatchObject({ changed: 1, redriven: 1 });
  const filter = { state: 'cancelled' };
  expect(await change(node, 'redrive', { filter, dryRun: true })).toMatchObject({ matched: 2, redriven: 0 });
  expect(await change(node, 'redrive', { filter, task: 'work' })).toMatchObject({ changed: 2 });
  expect(await statesOf(node)).toEqual({ pending: 3 });
});

describe('at the same time', () => {
  it('as workers claim, every job is cancelled or has run, never both and never neither', async () => {
    const node = shared.newTenant();
    const ran = new Set<string>();
    const quick = task('quick', (_: null, ctx) => void ran.add(ctx.jobId));
    const epoch = await epochOf(shared);
    await submitAll(node, copies(3_000, { task: 'quick' }));
    await node.work([quick], { slots: 50 });
    await expect.poll(() => ran.size).toBeGreaterThan(0);
    const result = await node.connect().cancelMany({ all: true });
    await expect
      .poll(async () => ((s) => (s.cancelled ?? 0) + (s.succeeded ?? 0))(await statesOf(node)), {
        timeout: 20_000,
      })
      .toBe(3_000);
    const jobs = await allJobs(node);
    const cancelled = jobs.filter(({ state }) => state === 'cancelled');
    expect(cancelled.length).toBeGreaterThan(0);
    expect(result.changed).toBeGreaterThanOrEqual(cancelled.length);
    for (const { id, state, attempts } of jobs) {
      expect([id, state === 'succeeded' || attempts.length > 0]).toEqual([id, ran.has(id)]);
    }
    expect(await epochOf(shared)).toBe(epoch);
  });

  it('deletion, redrive and retries of the same jobs end no term and lose no job', async () => {
    const node = shared.newTenant();
    const epoch = await epochOf(shared);
    const ids = await failAll(node, copies(300, {}));
    const punctual = node.connect();
    const retry = (id: string) => node.ask('POST', `/v1/jobs/${id}/retry`);
    const [deleted, redriven, ...retried] = await Promise.all([
      punctual.deleteMany({ all: true }),
      punctual.retryMany({ all: true }),
      ...ids.filter((_, n) => n % 3 === 0).map(retry),
    ]);
    const answered = retried.filter(({ status }) => status === 200).length;
    expect(retried.every(({ status }) => [200, 404, 409].includes(status))).toBe(true);
    expect(deleted.changed + redriven.changed + answered).toBe(300);
    expect([deleted.refused, redriven.refused]).toEqual([[], []]);
    expect((await statesOf(node)).pending ?? 0).toBe(300 - deleted.changed);
    expect(await epochOf(shared)).toBe(epoch);
    const worker = await ProtocolWorker.register(node, { slots: 1_000 });
    const started = new Set<string>();
    while (started.size < 300 - deleted.changed) {
      for (const { jobId } of await worker.claim(1_000)) started.add(jobId);
    }
  });

  it('two changes of one tenant go on side by side, and both come to their end', async () => {
    const node = shared.newTenant();
    await submitAll(node, copies(2_000, { task: 'nobody' }));
    const punctual: Punctual = node.connect();
    const [held, cancelled] = await Promise.all([
      punctual.holdMany({ all: true }),
      punctual.cancelMany({ all: true }),
    ]);
    expect(cancelled.changed).toBe(2_000);
    expect(held.changed).toBeLessThanOrEqual(2_000);
    expect(await statesOf(node)).toEqual({ cancelled: 2_000 });
  });
});

it('a change of many jobs goes on under the next term, and changes each of them once', async () => {
  const node = await nodeForTest({ settings: { leaseTtl: '2s' } });
  const ids = await submitAll(node, copies(1_500, { task: 'nobody' }));
  const epoch = await epochOf(node);
  await withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    // The newest are cancelled first, so several batches come before this one.
    await client.query('SELECT 1 FROM punctual.jobs WHERE id = $1 FOR UPDATE', [ids[200]]);
    const cancelled = node.connect().cancelMany({ all: true });
    await withClient(node.database.url, async (onlooker) => {
      const count = 'SELECT count(*)::int AS n FROM punctual.job_history';
      await expect.poll(async () => (await onlooker.query(count)).rows[0].n).toBeGreaterThan(0);
      await onlooker.query('SELECT pg_terminate_backend(session_pid) FROM punctual.leases');
    });
    await expect.poll(() => epochOf(node), { timeout: 20_000 }).toBeGreaterThan(epoch);
    await client.query('COMMIT');
    const result = await cancelled;
    expect(result.refused).toEqual([]);
    const { rows } = await client.query(
      `SELECT count(*)::int AS jobs, count(DISTINCT id)::int AS ids FROM punctual.job_history WHERE state = 'cancelled'`,
    );
    expect(rows).toEqual([{ jobs: 1_500, ids: 1_500 }]);
    const totals = await client.query(
      `SELECT sum(jobs_cancelled)::int AS n FROM (SELECT jobs_cancelled FROM punctual.tallies
         UNION ALL SELECT jobs_cancelled FROM punctual.tally_totals) t`,
    );
    expect(totals.rows).toEqual([{ n: 1_500 }]);
  });
}, 60_000);

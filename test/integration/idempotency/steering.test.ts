import { beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { ManyJobsAnswer, Page, RedriveAnswer } from '../../../src/core/wire.js';
import { nodeForTest, TestNode, type TestTenant } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';

const withKey = (key: string) => ({ 'idempotency-key': key });

/** A route that changes something: what must be there before, what is asked for, and the row that it writes. */
interface Change {
  prepare?(tenant: TestTenant): Promise<Record<string, string>>;
  readonly path: string;
  readonly body?: unknown;
  readonly status?: number;
  /** Selects `xmin` of what was written; $1 is the tenant. */
  readonly written: string;
  /** Whether the answer is completed afterwards, because the change may take several transactions. */
  readonly inParts?: true;
}

const held = async (tenant: TestTenant) => ({ id: (await tenant.submit({ task: 'work', hold: true })).id });
const waiting = async (tenant: TestTenant) => ({ id: (await tenant.submit({ task: 'work' })).id });
const cancelled = async (tenant: TestTenant) => {
  const { id } = await tenant.submit({ task: 'work' });
  await tenant.get('POST', `/v1/jobs/${id}/cancel`);
  return { id };
};
const running = async (tenant: TestTenant) => {
  const { id } = await tenant.submit({ task: 'work' });
  const worker = await ProtocolWorker.register(tenant);
  await worker.claimOne();
  return { id };
};
const schedule = (paused: boolean) => async (tenant: TestTenant) => {
  await tenant.get('POST', '/v1/schedules', {
    body: { name: 'nightly', task: 'work', cron: '0 3 * * *', paused },
  });
  return {};
};
const at = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

const LIVE = 'SELECT xmin FROM punctual.jobs WHERE tenant = $1';
const LATER = 'SELECT xmin FROM punctual.later WHERE tenant = $1';
const HISTORY = 'SELECT xmin FROM punctual.job_history WHERE tenant = $1';
const SCHEDULE = 'SELECT xmin FROM punctual.schedules WHERE tenant = $1';

const CHANGES: Record<string, Change> = {
  'a job is submitted': { path: '/v1/jobs', body: { task: 'work' }, status: 201, written: LIVE },
  'a job of the far future is submitted': {
    ...{ path: '/v1/jobs', body: { task: 'work', delay: '1d' }, status: 201, written: LATER },
  },
  'jobs are submitted': {
    path: '/v1/jobs/bulk',
    body: { jobs: [{ task: 'work' }] },
    status: 201,
    written: LIVE,
  },
  'a job with a key is submitted': {
    path: '/v1/jobs',
    body: { task: 'work', key: 'k' },
    status: 201,
    written: LIVE,
  },
  'a job that may replace another is submitted': {
    ...{ path: '/v1/jobs', body: { task: 'work', key: 'k', keyMode: 'replace' }, status: 201, written: LIVE },
  },
  'a waiting job is cancelled': { prepare: waiting, path: '/v1/jobs/:id/cancel', written: HISTORY },
  'a held job is cancelled': { prepare: held, path: '/v1/jobs/:id/cancel', written: HISTORY },
  'a running job is cancelled': {
    ...{ prepare: running, path: '/v1/jobs/:id/cancel' },
    written: 'SELECT c.xmin FROM punctual.claims c JOIN punctual.jobs j ON j.id = c.job WHERE j.tenant = $1',
  },
  'a job is held': { prepare: waiting, path: '/v1/jobs/:id/hold', written: LATER },
  'a job is released': { prepare: held, path: '/v1/jobs/:id/release', written: LIVE },
  'a job is retried': { prepare: cancelled, path: '/v1/jobs/:id/retry', written: LIVE },
  'many are cancelled': {
    prepare: waiting,
    path: '/v1/jobs/cancel',
    body: { all: true },
    inParts: true,
    written: HISTORY,
  },
  'many are held': {
    prepare: waiting,
    path: '/v1/jobs/hold',
    body: { all: true },
    inParts: true,
    written: LATER,
  },
  'many are released': {
    prepare: held,
    path: '/v1/jobs/release',
    body: { all: true },
    inParts: true,
    written: LIVE,
  },
  'many are sent round again': {
    ...{
      prepare: cancelled,
      path: '/v1/jobs/redrive',
      body: { filter: { state: 'cancelled' } },
      inParts: true,
      written: LIVE,
    },
  },
  'a schedule is made': {
    ...{
      path: '/v1/schedules',
      body: { name: 'nightly', task: 'work', every: '1h' },
      status: 201,
      written: SCHEDULE,
    },
  },
  'a schedule is paused': {
    prepare: schedule(false),
    path: '/v1/schedules/nightly/pause',
    written: SCHEDULE,
  },
  'a schedule is resumed': {
    prepare: schedule(true),
    path: '/v1/schedules/nightly/resume',
    written: SCHEDULE,
  },
  'a schedule is run': {
    prepare: schedule(false),
    path: '/v1/schedules/nightly/run',
    status: 201,
    written: LIVE,
  },
  'a schedule is filled up': {
    ...{ prepare: schedule(false), path: '/v1/schedules/nightly/backfill', written: LIVE },
    body: { from: at(-3), to: at(-1) },
  },
  'a queue is paused': {
    ...{ prepare: waiting, path: '/v1/queues/default/pause' },
    written: 'SELECT xmin FROM punctual.queues WHERE tenant = $1',
  },
  'a tenant is made': {
    ...{ path: '/v1/tenants', body: { id: 'another' }, status: 201 },
    written: `SELECT xmin FROM punctual.tenants WHERE id = 'another' AND $1 <> ''`,
  },
  'dispatch is paused': {
    ...{ path: '/v1/cluster/pause', written: `SELECT xmin FROM punctual.cluster WHERE $1 <> ''` },
  },
  'dispatch is resumed': {
    ...{ path: '/v1/cluster/resume', written: `SELECT xmin FROM punctual.cluster WHERE $1 <> ''` },
  },
};

/** Lets answers fail to be kept under this condition from now on. */
async function failWhen({ database }: TestNode, condition: string): Promise<void> {
  await withClient(database.url, (client) =>
    client.query(`
      CREATE OR REPLACE FUNCTION punctual.fail_to_keep() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF ${condition} THEN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END IF;
        RETURN NEW;
      END $$;
      CREATE OR REPLACE TRIGGER fail_to_keep BEFORE INSERT OR UPDATE ON punctual.idempotency
        FOR EACH ROW EXECUTE FUNCTION punctual.fail_to_keep()`),
  );
}

describe('with an Idempotency-Key', () => {
  let test: TestNode;
  beforeAll(async () => {
    test = await TestNode.start();
    return () => test.stop();
  });

  it.each(Object.entries(CHANGES))('%s once, in one transaction with its answer', async (name, change) => {
    const { prepare, path, body, status = 200, written, inParts } = change;
    const tenant = test.newTenant();
    const { id = '' } = (await prepare?.(tenant)) ?? {};
    const send = () =>
      tenant.ask('POST', path.replace(':id', id), {
        headers: withKey(name),
        ...(body !== undefined && { body }),
      });
    const first = await send();
    expect(first.status, JSON.stringify(first.body)).toBe(status);
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    const xmins = (text: string) =>
      withClient(test.database.url, async (client) => {
        const { rows } = await client.query<{ xmin: string }>(text, [tenant.tenant]);
        return rows.map(({ xmin }) => xmin);
      });
    const effects = new Set(await xmins(written));
    const kept = await xmins('SELECT xmin FROM punctual.idempotency WHERE tenant = $1');
    if (!inParts) expect([...effects]).toEqual(kept);
    expect(kept).toHaveLength(1);
    const second = await send();
    expect(second).toMatchObject({ status, body: first.body });
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect(second.headers.get('location')).toBe(first.headers.get('location'));
    expect(new Set(await xmins(written))).toEqual(effects);
  });

  it.each(Object.entries(CHANGES).filter(([, { inParts }]) => inParts))(
    '%s not at all if the answer cannot be kept',
    async (name, { prepare, path, body, written }) => {
      const tenant = test.newTenant();
      await prepare?.(tenant);
      const query = (text: string) =>
        withClient(test.database.url, async (client) => (await client.query(text, [tenant.tenant])).rows);
      const before = await query(written);
      await failWhen(test, `NEW.tenant = '${tenant.tenant}'`);
      const answer = await tenant.ask('POST', path, { headers: withKey(name), body });
      expect(answer).toMatchObject({ status: 503, body: { code: 'DATABASE_UNAVAILABLE' } });
      expect(await query(written)).toEqual(before);
    },
  );

  it('many are deleted once', async () => {
    const tenant = test.newTenant();
    await cancelled(tenant);
    const send = () =>
      tenant.ask<ManyJobsAnswer>('POST', '/v1/jobs/delete', {
        body: { all: true },
        headers: withKey('delete'),
      });
    const first = await send();
    expect(first.body).toMatchObject({ matched: 1, changed: 1, next: null });
    await cancelled(tenant);
    expect((await send()).body).toEqual(first.body);
    expect((await tenant.get<Page<Job>>('GET', '/v1/jobs')).data).toHaveLength(1);
  });

  it('a worker is drained once', async () => {
    const tenant = test.newTenant();
    const worker = await ProtocolWorker.register(tenant);
    const send = () => tenant.ask('POST', `/v1/workers/${worker.id}/drain`, { headers: withKey('drain') });
    const first = await send();
    expect(first.body).toMatchObject({ state: 'draining' });
    await tenant.ask('DELETE', `/v1/workers/${worker.id}`);
    expect((await send()).body).toEqual(first.body);
  });

  it('a retried job that has failed again is not retried by the same request', async () => {
    const tenant = test.newTenant();
    const { id } = await cancelled(tenant);
    const send = () => tenant.ask<Job>('POST', `/v1/jobs/${id}/retry`, { headers: withKey('retry') });
    const first = await send();
    await tenant.get('POST', `/v1/jobs/${id}/cancel`);
    expect((await send()).body).toEqual(first.body);
    expect(await tenant.job(id)).toMatchObject({ state: 'cancelled' });
  });

  it('a refusal is not kept: what was refused may be asked for again', async () => {
    const tenant = test.newTenant();
    const { id } = await waiting(tenant);
    const send = () => tenant.ask('POST', `/v1/jobs/${id}/retry`, { headers: withKey('later') });
    expect(await send()).toMatchObject({ status: 409, body: { code: 'JOB_NOT_ENDED' } });
    await tenant.get('POST', `/v1/jobs/${id}/cancel`);
    expect((await send()).status).toBe(200);
  });

  it('what does nothing leaves nothing behind, and runs again', async () => {
    const tenant = test.newTenant();
    await schedule(false)(tenant);
    const { id } = await tenant.submit({ task: 'work', key: 'order', hold: true });
    const tried: Record<string, [path: string, body: unknown]> = {
      dry: ['/v1/jobs/cancel', { dryRun: true }],
      none: ['/v1/jobs/cancel', { filter: { task: 'nothing' } }],
      fill: ['/v1/schedules/nightly/backfill', { from: at(-3), to: at(-1), dryRun: true }],
      repeated: ['/v1/jobs', { task: 'work', key: 'order' }],
      bulk: ['/v1/jobs/bulk', { jobs: [{ task: 'work', key: 'order' }] }],
    };
    const send = (key: string) =>
      tenant.ask('POST', tried[key]![0], { body: tried[key]![1], headers: withKey(key) });
    for (const key of Object.keys(tried)) {
      const first = await send(key);
      expect(first.status, JSON.stringify(first.body)).toBeLessThan(300);
      const second = await send(key);
      expect([second.status, second.body]).toEqual([first.status, first.body]);
      expect(second.headers.get('idempotency-replayed')).toBeNull();
    }
    const { rows } = await withClient(test.database.url, (client) =>
      client.query('SELECT key FROM punctual.idempotency WHERE tenant = $1', [tenant.tenant]),
    );
    expect(rows).toEqual([]);
    await waiting(tenant);
    expect((await send('dry')).body).toMatchObject({ matched: 2, changed: 0, dryRun: true });
    expect((await tenant.job(id)).state).toBe('pending');
  });

  it('the worker protocol takes no key', async () => {
    const tenant = test.newTenant();
    const register = () =>
      tenant.ask<{ workerId: string }>('POST', '/v1/workers', {
        body: { name: 'w', queues: ['default'], slots: 1, targets: ['handler'], tasks: ['work'], labels: {} },
        headers: withKey('register'),
      });
    const [first, second] = [await register(), await register()];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body.workerId).not.toBe(first.body.workerId);
  });
});

it('a change of many jobs is kept part by part, and its last word is what it answered', async () => {
  const JOBS = 1_200;
  const node = await nodeForTest();
  const jobs = Array.from({ length: JOBS }, () => ({ task: 'work' }));
  await node.get('POST', '/v1/jobs/bulk', { body: { jobs } });
  const cancel = await node.get<ManyJobsAnswer>('POST', '/v1/jobs/cancel', { body: { all: true } });
  expect(cancel.changed).toBe(JOBS);
  const send = () =>
    node.ask<RedriveAnswer>('POST', '/v1/jobs/redrive', {
      body: { filter: { state: 'cancelled' } },
      headers: withKey('redrive'),
    });
  // The second batch of 500 fails: what the first one did is kept, with where to go on.
  await failWhen(node, `(NEW.answer->>'changed')::int > 500`);
  const first = await send();
  expect(first).toMatchObject({
    status: 200,
    body: { matched: 500, changed: 500, redriven: 500, more: true },
  });
  const live = () =>
    withClient(node.database.url, async (client) => {
      const { rows } = await client.query('SELECT count(*)::int AS n FROM punctual.jobs');
      return rows[0].n as number;
    });
  expect(await live()).toBe(500);
  expect((await send()).body).toEqual(first.body);
  await failWhen(node, 'false');
  const rest = await node.ask<RedriveAnswer>('POST', '/v1/jobs/redrive', {
    body: { filter: { state: 'cancelled' }, after: first.body.next },
    headers: withKey('redrive-2'),
  });
  expect(rest.body).toMatchObject({ changed: JOBS - 500, more: false, next: null });
  expect(await live()).toBe(JOBS);
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import type { NewKeyView } from '../../../src/core/access.js';
import { task } from '../../../src/core/task.js';
import type {
  ErrorGroupsView,
  ForecastView,
  ManyJobsAnswer,
  QueueHistoryView,
  WaitingView,
} from '../../../src/core/wire.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { countStatements } from '../../count-statements.js';
import { TestNode } from '../../node-for-tests.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
  const fail = task('fail', { retry: { maxAttempts: 1 } }, async (input: { message: string }) => {
    throw new Error(input.message);
  });
  const refuse = task('refuse', { retry: { maxAttempts: 1 } }, async () => {
    throw new Error('refused');
  });
  await node.work([fail, refuse], { queues: ['mail', 'default'], tenant: 'acme', slots: 20 });
}, 60_000);
afterAll(() => node.stop());

const submit = (body: Record<string, unknown>) => node.submit({ retry: { maxAttempts: 1 }, ...body }, 'acme');
const errors = (query = '') => node.get<ErrorGroupsView>('GET', `/v1/errors${query}`, { tenant: 'acme' });

describe('errors', () => {
  const MESSAGES = [
    'Customer 17 is unknown',
    'Customer 4711 is unknown',
    'Customer 0198c0de-0000-7000-8000-00000000beef is unknown\nat line 3',
    'Cannot reach db-7.internal:5432',
    'with a NUL \u0000 and half a pair \ud800',
  ];

  beforeAll(async () => {
    const jobs = await Promise.all([
      ...MESSAGES.map((message) => submit({ task: 'fail', queue: 'mail', payload: { message } })),
      submit({ task: 'refuse' }),
    ]);
    await Promise.all(jobs.map(({ id }) => node.ended(id, 'acme')));
  }, 60_000);

  it('are grouped by task and by what their messages have in common', async () => {
    const { data, complete, examined, from, to, intervalMs } = await errors();
    expect([complete, examined]).toEqual([true, 6]);
    expect(data.map(({ task, message, count }) => [task, message, count])).toEqual(
      expect.arrayContaining([
        ['fail', 'Customer # is unknown', 3],
        ['fail', 'Cannot reach db-#.internal:#', 1],
        ['refuse', 'refused', 1],
      ]),
    );
    expect(data).toHaveLength(4);
    expect(data[0]!.count).toBe(3);
    const [most] = data;
    expect(most!.counts.reduce((a, b) => a + b, 0)).toBe(3);
    expect(most!.counts).toHaveLength((Date.parse(to) - Date.parse(from)) / intervalMs);
    expect(Date.parse(most!.firstSeen)).toBeLessThanOrEqual(Date.parse(most!.lastSeen));
    const example = await node.job(most!.exampleJobId, 'acme');
    expect([example.state, example.task]).toEqual(['failed', 'fail']);
    expect(example.finishedAt).toBe(most!.lastSeen);
  });

  it('can be asked for by task, queue and time', async () => {
    expect((await errors('?task=refuse')).data).toHaveLength(1);
    expect((await errors('?queue=mail')).data.every(({ task }) => task === 'fail')).toBe(true);
    expect((await errors('?queue=none')).data).toEqual([]);
    expect((await errors('?limit=1')).data).toHaveLength(1);
    expect((await errors('?since=1m')).data).toHaveLength(4);
    // What was passed over is not counted, nor told to a key that may not see it.
    expect((await errors('?task=refuse')).examined).toBe(1);
    expect((await errors('?limit=1')).examined).toBe(6);
    expect((await node.ask('GET', '/v1/errors?since=31d', { tenant: 'acme' })).status).toBe(422);
  });

  it('of others are not shown, nor those outside the queues of a key', async () => {
    expect((await node.get<ErrorGroupsView>('GET', '/v1/errors', { tenant: 'globex' })).data).toEqual([]);
    const body = { name: 'two', tenant: 'acme', scopes: ['read'], queues: ['default', 'other'] };
    const { key } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
    const { data } = await node.get<ErrorGroupsView>('GET', '/v1/errors', { key });
    expect(data.map((each) => each.task)).toEqual(['refuse']);
  });

  it('name a group that can be listed, counted and sent round again', async () => {
    const { fingerprint } = (await errors()).data[0]!;
    const listed = await node.get<{ data: unknown[] }>('GET', `/v1/jobs?fingerprint=${fingerprint}`, {
      tenant: 'acme',
    });
    expect(listed.data).toHaveLength(3);
    const redrive = (dryRun: boolean) =>
      node.get<ManyJobsAnswer>('POST', '/v1/jobs/redrive', {
        tenant: 'acme',
        body: { filter: { fingerprint }, ...(dryRun && { dryRun }) },
      });
    expect((await redrive(true)).matched).toBe(3);
    expect((await redrive(false)).changed).toBe(3);
    await expect
      .poll(async () => (await errors()).data.find((each) => each.fingerprint === fingerprint)?.count, {
        timeout: 10_000,
      })
      .toBe(3);
    const wrong = await node.ask('GET', '/v1/jobs?fingerprint=x', { tenant: 'acme' });
    expect(wrong.status).toBe(422);
  });
});

describe('the forecast', () => {
  const ahead = (minutes: number, tenant: string) =>
    node.get<ForecastView>('GET', `/v1/forecast?minutes=${minutes}`, { tenant });
  const tenant = 'planner';

  it('counts what becomes due by the minute: live jobs, later ones and schedules, and marks herds', async () => {
    const minute = (i: number) => Math.floor(Date.now() / 60_000) * 60_000 + i * 60_000 + 1_000;
    const at = (i: number) => new Date(minute(i)).toISOString();
    const jobs = [
      { task: 't', runAt: at(5) },
      ...Array.from({ length: 30 }, () => ({ task: 't', runAt: at(50) })),
      { task: 't', runAt: at(200) },
      { task: 't', runAt: at(40), hold: true },
    ];
    await node.get('POST', '/v1/jobs/bulk', { tenant, body: { jobs } });
    await node.get('POST', '/v1/schedules', { tenant, body: { name: 'often', task: 't', every: '10s' } });
    await node.get('POST', '/v1/schedules', {
      tenant,
      body: { name: 'paused', task: 't', every: '10s', paused: true },
    });
    const forecast = await ahead(60, tenant);
    expect(forecast.data).toHaveLength(60);
    const of = (i: number) => forecast.data.find((each) => Date.parse(each.at) === minute(i) - 1_000)!;
    expect([of(5).jobs, of(50).jobs, of(40).jobs]).toEqual([1, 30, 0]);
    expect([of(5).herd, of(50).herd]).toEqual([false, true]);
    expect(of(30).occurrences).toBe(6);
    expect(forecast.soonest.map(({ schedule }) => schedule)).toEqual(['often']);
    expect(Date.parse(forecast.soonest[0]!.at) - Date.now()).toBeLessThan(11_000);
    expect(forecast.complete).toBe(true);
    // Attempts of the tests above have ended, so their average is known.
    expect(forecast.averageRunMs).toBeGreaterThanOrEqual(0);
    expect((await ahead(240, tenant)).data.reduce((sum, { jobs }) => sum + jobs, 0)).toBe(32);
    const others = await ahead(60, 'globex');
    expect(others.data.every(({ jobs, occurrences }) => jobs + occurrences === 0)).toBe(true);
    const everybody = await node.get<ForecastView>('GET', '/v1/forecast');
    expect(everybody.data.reduce((sum, { jobs }) => sum + jobs, 0)).toBeGreaterThanOrEqual(31);
    expect((await node.ask('GET', '/v1/forecast?minutes=1441')).status).toBe(422);
  });

  it('is made once for all who ask for the same at the same time', async () => {
    const counts = countStatements();
    const forecasts = await Promise.all(Array.from({ length: 20 }, () => ahead(30, tenant)));
    // Some may come when the first one is there already.
    const made = counts.get('count-later-by-minute')!;
    expect(made).toBeLessThan(10);
    expect(new Set(forecasts.map((each) => JSON.stringify(each))).size).toBeLessThanOrEqual(made);
  });
});

describe('what jobs wait for', () => {
  const waiting = (tenant: string) => node.get<WaitingView>('GET', '/v1/waiting', { tenant });

  it('is told by reason, from the memory of the leader', async () => {
    const tenant = 'waiter';
    await node.submit({ task: 'nobody-has-it', queue: 'lonely' }, tenant);
    await node.submit({ task: 'nobody-has-it', queue: 'lonely' }, tenant);
    await node.submit({ task: 'nobody-has-it', delay: '5m' }, tenant);
    await node.submit({ task: 'nobody-has-it', queue: 'stopped' }, tenant);
    await node.get('POST', '/v1/queues/stopped/pause', { tenant });
    await expect
      .poll(async () => (await waiting(tenant)).data.map(({ reason, jobs }) => [reason, jobs]), {
        timeout: 30_000,
      })
      .toEqual(
        expect.arrayContaining([
          ['no-fitting-worker', 2],
          ['due-time', 1],
          ['queue-paused', 1],
        ]),
      );
    const found = (await waiting(tenant)).data.find(({ reason }) => reason === 'no-fitting-worker')!;
    expect(found.queues).toEqual([{ queue: 'lonely', jobs: 2 }]);
    expect(found.oldestReadyMs).toBeGreaterThan(0);
    expect((await waiting('globex')).data).toEqual([]);

    const workflow = { jobs: { first: { task: 'x', hold: true }, second: { task: 'x', after: ['first'] } } };
    await node.get('POST', '/v1/workflows', { tenant, body: { name: 'w', ...workflow } });
    await node.submit({ task: 'x', delay: '30d' }, tenant);
    await node.submit({ task: 'x', hold: true }, tenant);
    expect(await waiting(tenant)).not.toHaveProperty('later');
    const all = await node.get<WaitingView>('GET', '/v1/waiting?include=later', { tenant });
    expect(all.later).toEqual({ held: 2, blocked: 1, notDue: 1, complete: true });
    const everybody = await node.get<WaitingView>('GET', '/v1/waiting?include=later');
    expect(everybody.later!.held).toBeGreaterThanOrEqual(3);
    const body = { name: 'of a queue', tenant, scopes: ['read'], queues: ['lonely'] };
    const { key } = await node.get<{ key: string }>('POST', '/v1/keys', { body });
    expect((await node.ask('GET', '/v1/waiting', { key })).status).toBe(200);
    expect((await node.ask('GET', '/v1/waiting?include=later', { key })).status).toBe(403);
  }, 60_000);
});

describe('the history of a queue', () => {
  it('is kept by the minute, and outlives the leader that counted it', async () => {
    const leader = node.node.context.shards[0].currentLeader()!;
    await leader.keepQueueMinute();
    const history = (query = '') =>
      node.get<QueueHistoryView>('GET', `/v1/queues/mail/history${query}`, { tenant: 'acme' });
    // What has just been written may count for a minute that has not ended yet.
    const { rows } = await node.node.context.shards[0].pool.query<{ ended: number; minute: number }>(
      `SELECT m.ended, m.minute FROM punctual.queue_minutes m JOIN punctual.queues q ON q.id = m.queue
       WHERE q.tenant = 'acme' AND q.name = 'mail'`,
    );
    expect(Number(rows[0]!.ended)).toBeGreaterThanOrEqual(5);
    await node.node.context.shards[0].pool.query(
      'UPDATE punctual.queue_minutes SET minute = minute - 120000, ready = 7, oldest_ready_ms = 1234',
    );
    const { data, queue } = await history();
    expect([queue, data.length]).toEqual(['mail', 60]);
    expect(data.filter(({ ended }) => ended > 0)).toEqual([
      expect.objectContaining({ ended: Number(rows[0]!.ended), ready: 7, oldestReadyMs: 1_234 }),
    ]);
    expect((await history('?minutes=1')).data).toHaveLength(1);
    expect((await node.ask('GET', '/v1/queues/mail/history', { tenant: 'globex' })).status).toBe(404);
  });
});

it('programs and the command line are shown the same', async () => {
  const punctual = node.connect('acme');
  expect((await punctual.errors({ since: '1h', limit: 1 })).data).toHaveLength(1);
  expect((await punctual.forecast({ minutes: 3 })).data).toHaveLength(3);
  expect((await punctual.queueHistory('mail', { minutes: 5 })).data).toHaveLength(5);
  expect((await punctual.waiting()).next).toBe(null);
  const run = async (...args: string[]) => {
    const environment = { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey };
    const shell = cliUnderTest({ environment });
    expect([await runCli([...args, '--tenant', 'acme'], shell.cli), shell.stderr()]).toEqual([0, '']);
    return shell.stdout();
  };
  expect(await run('job', 'errors')).toContain('Customer # is unknown');
  expect(await run('queue', 'history', 'mail', '--minutes', '5')).toMatch(/^MINUTE +ENDED/);
  expect(await run('queue', 'waiting')).toContain('no live job waits');
  expect(await run('cluster', 'forecast', '--minutes', '5')).toContain('nothing becomes due');
  const { fingerprint } = (await punctual.errors({ limit: 1 })).data[0]!;
  expect(await run('job', 'redrive', '--fingerprint', fingerprint, '--dry-run')).toContain('3');
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { SILENT_LOG } from '../../src/core/log.js';
import { task } from '../../src/core/task.js';
import type { Page, UnservedView } from '../../src/core/wire.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { until } from './store/test-shard.js';

/** A leader and a follower that warn soon; the tests ask the follower. */
let database: TestDatabase;
let leader: TestNode;
let follower: TestNode;
const logged: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  const note = (_: unknown, message: string) => void logged.push(message);
  const options = {
    ...{ database, settings: { unservedAfter: '200ms', metricsLabels: 3, workerTimeout: '2m' } },
    log: { ...SILENT_LOG, warn: note, info: note },
  };
  leader = await TestNode.start(options);
  await until(() => leader.node.leads());
  follower = await TestNode.start(options);
});
afterAll(async () => {
  await follower.stop();
  await leader.stop();
  await database.drop();
});

async function sample(node: TestNode, series: string): Promise<number | undefined> {
  const text = await node.get<string>('GET', '/metrics');
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

/** Waits until both nodes show this value. */
async function shows(series: string, value: number): Promise<void> {
  for (const node of [leader, follower]) await until(async () => (await sample(node, series)) === value);
}

it('every node shows what only the leader knows, by queue and task', async () => {
  const worker = await ProtocolWorker.register(leader, { queues: ['calls'], slots: 7 });
  for (let i = 0; i < 3; i++) await follower.submit({ task: 'work', queue: 'calls' });
  const waiting = await follower.submit({ task: 'work', queue: 'calls', delay: '1h' });
  for (let i = 0; i < 2; i++) await worker.succeed(await worker.claimOne());
  await worker.claimOne();
  const pair = 'queue="calls",task="work"';
  await shows(`punctual_attempts_ended_total{${pair},outcome="succeeded"}`, 2);
  await shows(`punctual_attempt_wait_seconds_count{${pair}}`, 3);
  await shows(`punctual_attempt_run_seconds_count{${pair}}`, 2);
  await shows('punctual_queue_jobs_running{queue="calls"}', 1);
  await shows('punctual_jobs_running', 1);
  await shows('punctual_worker_slots', 7);
  await shows('punctual_jobs_submitted_total', 4);
  await shows('punctual_job_lateness_seconds_count', 3);
  expect(await sample(follower, 'punctual_job_lateness_seconds_sum')).toBeGreaterThanOrEqual(0);
  await follower.get('POST', `/v1/jobs/${waiting.id}/cancel`);
});

it('only as many names are shown as are allowed', async () => {
  const worker = await ProtocolWorker.register(leader, { queues: ['*'], slots: 20 });
  for (let i = 0; i < 10; i++) await leader.submit({ task: 'work', queue: `many-${i}` });
  for (let i = 0; i < 10; i++) await worker.claimOne();
  // The one of the test before, and two of these.
  await shows('punctual_attempt_wait_seconds_count{queue="other",task="other"}', 8);
  await shows('punctual_queue_jobs_running{queue="other"}', 8);
});

it('jobs that no worker serves are listed, logged and counted until a worker for their task comes', async () => {
  const partner = task('call-partner', { queue: 'partners' }, () => 'called');
  const tenant = follower.newTenant();
  await leader.work([task('call-partner', () => 'elsewhere')], { tenant: tenant.tenant });
  const job = await tenant.connect().submit(partner, undefined);
  const unserved = async () => (await tenant.get<Page<UnservedView>>('GET', '/v1/unserved')).data;
  await until(async () => (await unserved()).length === 1);
  expect(await unserved()).toMatchObject([
    {
      ...{ queue: 'partners', target: 'handler', task: 'call-partner', requires: {}, ready: 1 },
      detail: 'No live worker serves queue partners with handler call-partner.',
    },
  ]);
  expect(await follower.get('GET', '/v1/unserved')).toEqual({ data: [], next: null });
  await shows('punctual_queue_jobs_unserved{queue="partners"}', 1);
  await until(() =>
    logged.includes('jobs are ready, but no live worker serves queue partners with handler call-partner'),
  );
  // Its queue follows from the task.
  await leader.work([partner], { tenant: tenant.tenant });
  expect(await job.result()).toBe('called');
  expect(await unserved()).toEqual([]);
  await shows('punctual_jobs_unserved', 0);
  await until(() =>
    logged.includes('no jobs lack a worker any more: queue partners with handler call-partner'),
  );
});

it('a page that is no page of the list is refused', async () => {
  expect((await follower.ask('GET', '/v1/unserved?after=nonsense')).status).toBe(422);
});

import { rm } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { task } from '../../../src/core/task.js';
import type { ClusterView, OccurrenceView, Page } from '../../../src/core/wire.js';
import { connect } from '../../../src/sdk/connect.js';
import { createOperatorKey } from '../../../src/store/operator-key.js';
import { createTestDatabase } from '../../database.js';
import { PunctualProcess } from '../../punctual-process.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { until } from '../store/test-shard.js';

/** How often the leader is killed. */
const KILLS = 3;

it('leaders that are killed around the fires of workflows and batches leave each occurrence exactly one', async () => {
  const [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  onTestFinished(async () => {
    await database.drop();
    await rm(folder, { recursive: true });
  });
  const { key } = await createOperatorKey(database.url, 'tester');
  const start = async () => {
    const environment = { PUNCTUAL_DATABASE_URL: database.url };
    const server = new PunctualProcess(['server', '--port', '0'], { folder, environment });
    onTestFinished(async () => void (await server.kill('SIGKILL')));
    const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
    return { server, url: url! };
  };
  const ask = async <T>(url: string, method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as T;
  };
  const leads = async (url: string) =>
    (await ask<ClusterView>(url, 'GET', '/v1/cluster')).shards[0]!.leader !== null;
  let leader = await start();
  await until(() => leads(leader.url));
  let follower = await start();
  const work = async (urls: readonly string[]) => {
    const punctual = connect({ url: urls.join(','), apiKey: key });
    onTestFinished(() => punctual.close());
    const worker = punctual.worker([task('work', async () => null)], { slots: 8, stopGraceMs: 50 });
    await worker.start();
    onTestFinished(() => worker.stop());
  };
  const jobs = Object.fromEntries(
    Array.from({ length: 50 }, (_, i) => [
      `s${i}`,
      { task: 'work', ...(i > 0 && { after: [`s${(i - 1) >> 1}`] }) },
    ]),
  );
  await ask(leader.url, 'PUT', '/v1/workflow-definitions/tree', { jobs });
  const often = { every: '1s', catchUp: 'all' };
  const made = await ask<{ createdAt: string }>(leader.url, 'POST', '/v1/schedules', {
    ...{ name: 'graphs', workflow: 'tree', ...often },
  });
  await ask(leader.url, 'POST', '/v1/schedules', {
    ...{ name: 'gangs', batch: { jobs: [{ task: 'work' }, { task: 'work' }] }, ...often },
  });
  const ledger = async (url: string, name: string) =>
    (await ask<Page<OccurrenceView>>(url, 'GET', `/v1/schedules/${name}/occurrences?limit=1000`)).data;
  for (let kill = 0; kill < KILLS; kill++) {
    const rows = (await ledger(follower.url, 'graphs')).length;
    await until(async () => (await ledger(follower.url, 'graphs')).length > rows);
    await leader.server.kill('SIGKILL');
    leader = follower;
    follower = await start();
    await work([leader.url, follower.url]);
    await until(async () => (await ledger(leader.url, 'graphs')).length > rows + 2);
  }
  for (const name of ['graphs', 'gangs']) await ask(leader.url, 'POST', `/v1/schedules/${name}/pause`);
  const since = Date.parse(made.createdAt);
  const ran = (await ledger(leader.url, 'graphs')).filter(({ reason }) => reason !== 'paused').reverse();
  expect(ran.map(({ at }) => (Date.parse(at) - since) / 1_000)).toEqual(ran.map((_, i) => i + 1));
  type Run = { readonly id: string; readonly scheduledAt: string | null; readonly state: string };
  const runsOf = async (path: string) => (await ask<Page<Run>>(leader.url, 'GET', path)).data;
  for (const [name, path] of [
    ['graphs', '/v1/workflows?schedule=graphs&limit=1000'],
    ['gangs', '/v1/batches?schedule=gangs&limit=1000'],
  ] as const) {
    const rows = (await ledger(leader.url, name)).filter(({ jobId }) => jobId !== undefined);
    const runs = await runsOf(path);
    expect(runs.map(({ id }) => id).sort()).toEqual(
      rows.map(({ workflowId, batchId }) => workflowId ?? batchId!).sort(),
    );
    expect(new Set(runs.map(({ scheduledAt }) => scheduledAt)).size).toBe(runs.length);
    await until(async () =>
      (await runsOf(path)).every(({ state }) => state !== 'running' && state !== 'pending'),
    );
  }
  const ended = await runsOf('/v1/workflows?schedule=graphs&limit=1000');
  expect(ended.every(({ state }) => state === 'succeeded')).toBe(true);
}, 180_000);

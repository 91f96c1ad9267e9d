import { expect, it, onTestFinished } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import type { KeyScope, NewKeyView } from '../../src/core/access.js';
import type { Job } from '../../src/core/job.js';
import { task } from '../../src/core/task.js';
import type { ClusterView, Page, StatsView, UnservedView, Why } from '../../src/core/wire.js';
import { cliUnderTest } from '../cli-under-test.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';

async function keyFor(node: TestNode, tenant: string, more: object = {}): Promise<string> {
  const scopes: KeyScope[] = ['read', 'submit', 'work'];
  const body = { name: tenant, tenant, scopes, ...more };
  return (await node.get<NewKeyView>('POST', '/v1/keys', { body })).key;
}

it('a tenant sees its own figures, and of the cluster only whether it is well', async () => {
  const node = await nodeForTest({ settings: { unservedAfter: '100ms' } });
  const [acme, globex] = [await keyFor(node, 'acme'), await keyFor(node, 'globex')];
  await node.get('POST', '/v1/jobs', { key: acme, body: { task: 'secret-task', queue: 'secret-queue' } });
  for (let i = 0; i < 2; i++) await node.get('POST', '/v1/jobs', { key: globex, body: { task: 'plain' } });

  const cluster = await node.get<ClusterView>('GET', '/v1/cluster', { key: globex });
  expect(cluster).toEqual({ ok: true, paused: false, shards: [], nodes: [] });
  expect((await node.get<ClusterView>('GET', '/v1/cluster')).nodes).toHaveLength(1);

  const stats = (key: string) => node.get<StatsView>('GET', '/v1/stats?history=1h', { key });
  const [ofAcme, ofGlobex, ofAll] = [await stats(acme), await stats(globex), await stats(node.apiKey)];
  expect([ofAcme.jobsSubmitted, ofGlobex.jobsSubmitted, ofAll.jobsSubmitted]).toEqual([1, 2, 3]);
  expect(ofGlobex.history!.reduce((sum, { jobsSubmitted }) => sum + jobsSubmitted, 0)).toBe(2);
  const named = await node.get<StatsView>('GET', '/v1/stats', { tenant: 'globex' });
  expect([named.jobsSubmitted, named.node?.id]).toEqual([2, node.node.id]);
  expect([ofGlobex.node, ofAll.node?.id]).toEqual([undefined, node.node.id]);

  const metrics = async (key: string) => (await node.ask<string>('GET', '/metrics', { key })).body;
  expect(await metrics(globex)).toContain('punctual_jobs_submitted_total 2');
  for (const word of ['secret', 'punctual_leader ', 'punctual_epoch', 'queue=']) {
    expect(await metrics(globex)).not.toContain(word);
  }
  await expect.poll(() => metrics(node.apiKey)).toContain('secret-queue');

  const unserved = async (key: string) =>
    (await node.get<Page<UnservedView>>('GET', '/v1/unserved', { key })).data.map(({ queue }) => queue);
  await expect.poll(() => unserved(acme)).toEqual(['secret-queue']);
  await expect.poll(() => unserved(globex)).toEqual(['default']);
});

it('the leader decides by the rights of the caller, whichever node was asked', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const leader = await nodeForTest({ database });
  await expect.poll(() => leader.node.leads()).toBe(true);
  const follower = await nodeForTest({ database });
  const key = await keyFor(leader, 'acme', { scopes: ['read', 'submit', 'work', 'admin'], queues: ['mail'] });
  const other = await keyFor(leader, 'globex', { scopes: ['admin'] });
  const job = await follower.get<Job>('POST', '/v1/jobs', { key, body: { task: 't', queue: 'mail' } });
  expect(job).toMatchObject({ tenant: 'acme', createdBy: 'acme' });
  const outside = await leader.submit({ task: 't', queue: 'money' }, 'acme');
  // All of these are for the leader to answer.
  const ask = async (method: string, path: string, by = key, body?: unknown) => {
    const { status } = await follower.ask(method, path, { key: by, ...(body !== undefined && { body }) });
    return status;
  };
  expect(await ask('GET', `/v1/jobs/${job.id}/why`)).toBe(200);
  expect(await ask('GET', `/v1/jobs/${outside.id}/why`)).toBe(404);
  expect(await ask('GET', `/v1/jobs/${job.id}/why`, other)).toBe(404);
  expect(await ask('POST', '/v1/queues/mail/pause')).toBe(200);
  expect(await ask('POST', '/v1/queues/money/pause')).toBe(404);
  expect(await ask('POST', '/v1/cluster/pause')).toBe(403);
  const registration = { name: 'w', slots: 1, targets: ['handler'], tasks: ['t'], labels: {} };
  expect(await ask('POST', '/v1/workers', key, { ...registration, queues: ['money'] })).toBe(403);
  expect(await ask('POST', '/v1/workers', key, { ...registration, queues: ['mail'] })).toBe(201);
  expect(await ask('POST', '/v1/workers', key, { ...registration, queues: ['mail'], shared: true })).toBe(
    403,
  );
  const view = await follower.get<Page<{ name: string }>>('GET', '/v1/queues', { key });
  expect(view.data.map(({ name }) => name)).toEqual(['mail']);
  expect(await ask('POST', `/v1/schedules/none/run`)).toBe(404);
}, 40_000);

it('only an operator is told that workers of other tenants could run a waiting job', async () => {
  const node = await nodeForTest();
  const [acme, greet] = [await keyFor(node, 'acme'), task('greet', () => 'hello')];
  await node.work([greet]);
  await node.work([greet]);
  await node.work([greet], { tenant: 'globex' });
  // These could not run it for acme either.
  await node.work([greet], { tenant: 'initech', queues: ['other'] });
  await node.work([task('other', () => 'other')], { tenant: 'hooli' });
  const { id } = await node.submit({ task: 'greet' }, 'acme');
  const own = await node.get<Why>('GET', `/v1/jobs/${id}/why`, { key: acme });
  expect(own.detail).toBe('No live worker serves queue default with handler greet.');
  expect(own.figures).toEqual({ workers: 0, workersOfQueue: 0, fittingWorkers: 0 });
  const told = await node.get<Why>('GET', `/v1/jobs/${id}/why`, { tenant: 'acme' });
  expect(told.detail).toBe(
    `${own.detail} 3 such workers serve this queue for tenants default, globex only; a shared worker, or one with --tenant acme, would take it.`,
  );
  expect(told.figures).toEqual({ ...own.figures, workersOfOtherTenants: 3 });

  const doctor = async (key: string, ...args: string[]) => {
    const environment = { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: key };
    const { cli, stdout } = cliUnderTest({ environment });
    await runCli(['doctor', ...args], cli);
    return stdout();
  };
  const seen = await doctor(node.apiKey, '--tenant', 'acme');
  expect(seen).toContain(`\`punctual job why ${id} --tenant acme\` says what is missing.`);
  expect(seen).toContain(`could run job ${id}: one with --shared or --tenant acme would take it.`);
  const seenByTenant = await doctor(acme);
  expect(seenByTenant).toContain(`\`punctual job why ${id}\` says what is missing.`);
  expect(seenByTenant).not.toContain('other tenants');

  // What the operator was told is true.
  await node.work([greet], { tenant: 'acme' });
  expect(await node.ended(id, 'acme')).toMatchObject({ state: 'succeeded' });
});

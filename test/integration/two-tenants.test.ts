import { expect, it, onTestFinished } from 'vitest';
import type { KeyScope, NewKeyView } from '../../src/core/access.js';
import type { Job } from '../../src/core/job.js';
import { task } from '../../src/core/task.js';
import type { Page } from '../../src/core/wire.js';
import { connect } from '../../src/sdk/connect.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, TestNode } from '../node-for-tests.js';

const TENANTS = ['acme', 'globex'] as const;

it('two tenants with workers, schedules and keys of their own share a cluster and see nothing of each other', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const first = await TestNode.start({ database });
  onTestFinished(() => first.stop(), 30_000);
  await expect.poll(() => first.node.leads()).toBe(true);
  const second = await nodeForTest({ database });
  const keyFor = async (tenant: string, scopes: readonly KeyScope[]) => {
    const body = { name: `${scopes} of ${tenant}`, tenant, scopes };
    return (await first.get<NewKeyView>('POST', '/v1/keys', { body })).key;
  };
  const url = [second.url, first.url];
  const ran: string[] = [];
  const users = new Map<string, ReturnType<typeof connect>>();
  const read = new Map<string, string>();
  for (const tenant of TENANTS) {
    const greet = task('greet', {}, async ({ whose }: { whose: string }, ctx) => {
      ran.push(`${tenant} ran ${whose}`);
      await ctx.progress(0.5, `of ${tenant}`);
      ctx.log.info(`greeting ${whose}`);
      return { by: tenant };
    });
    // A worker needs no more than `work`, and whoever waits for results no more than `submit` and `read`.
    const workers = connect({ url, apiKey: await keyFor(tenant, ['work']) });
    onTestFinished(() => workers.close());
    const worker = workers.worker([greet], { stopGraceMs: 50 });
    await worker.start();
    onTestFinished(() => worker.stop(), 20_000);
    read.set(tenant, await keyFor(tenant, ['submit', 'read']));
    const user = connect({ url, apiKey: read.get(tenant)! });
    onTestFinished(() => user.close());
    users.set(tenant, user);
    const body = { name: 'often', task: 'greet', every: '1s', payload: { whose: tenant } };
    await second.get('POST', '/v1/schedules', { key: await keyFor(tenant, ['admin']), body });
  }
  const submitAll = async () => {
    for (const tenant of TENANTS) {
      const job = await users.get(tenant)!.submit('greet', { whose: tenant }, { key: `greet-${ran.length}` });
      expect(await job.result({ signal: AbortSignal.timeout(20_000) })).toEqual({ by: tenant });
    }
  };
  await submitAll();
  await first.stop();
  await submitAll();
  for (const tenant of TENANTS) {
    await expect
      .poll(() => ran.filter((each) => each === `${tenant} ran ${tenant}`).length)
      .toBeGreaterThan(3);
  }
  expect(ran.filter((each) => !TENANTS.some((tenant) => each === `${tenant} ran ${tenant}`))).toEqual([]);
  for (const [tenant, key] of read) {
    const other = TENANTS.find((each) => each !== tenant)!;
    const { data } = await second.get<Page<Job>>('GET', '/v1/jobs?limit=1000&include=payload,result', {
      key,
    });
    expect(data.length).toBeGreaterThan(3);
    const lists = [
      '/v1/jobs?limit=1000',
      '/v1/workers',
      '/v1/schedules',
      '/v1/queues',
      '/v1/stats',
      '/metrics',
    ];
    for (const path of lists) {
      const { status, body } = await second.ask<unknown>('GET', path, { key });
      expect([path, status, JSON.stringify(body).includes(other)]).toEqual([path, 200, false]);
    }
  }
}, 90_000);

import { expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../../database.js';
import { TestNode, type TestNodeOptions } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';

async function start(options: TestNodeOptions): Promise<TestNode> {
  const node = await TestNode.start(options);
  onTestFinished(() => node.stop());
  return node;
}

it('a copy whose lease still names the leader of the original starts no job before it is resumed', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const original = await TestNode.start({ database });
  const { id } = await original.submit({ task: 'work' });
  await original.stop();

  // A dump that was restored beside the original: the leader's session exists on the server, and its lease lasts.
  await withClient(database.url, async (session) => {
    await session.query(
      `UPDATE punctual.leases SET holder = 'original', holder_url = 'http://127.0.0.1:1',
         session_pid = pg_backend_pid(), expires_at = clock_timestamp() + interval '1 hour',
         session_start = (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())`,
    );
    const copy = await start({ database, paused: true });
    const worker = await ProtocolWorker.register(copy);
    await worker.claimNothing();
    expect(await copy.get('GET', `/v1/jobs/${id}/why`)).toMatchObject({ gate: 'cluster-paused' });
    await copy.get('POST', '/v1/cluster/resume');
    expect((await worker.claimOne()).jobId).toBe(id);
  });
});

it('a leader that is at work when a paused node joins starts no more jobs', async () => {
  const leader = await start({});
  const before = await ProtocolWorker.register(leader);
  await leader.submit({ task: 'work' });
  await before.succeed(await before.claimOne());

  const joined = await start({ database: leader.database, paused: true });
  expect(await leader.get('GET', '/v1/cluster')).toMatchObject({ paused: true });
  const worker = await ProtocolWorker.register(joined);
  expect(worker.welcome.epoch).toBeGreaterThan(before.welcome.epoch);
  const { id } = await joined.submit({ task: 'work' });
  await worker.claimNothing();
  expect(await joined.get('GET', `/v1/jobs/${id}/why`)).toMatchObject({ gate: 'cluster-paused' });
  await joined.get('POST', '/v1/cluster/resume');
  expect((await worker.claimOne()).jobId).toBe(id);
});

import pg from 'pg';
import { expect, it } from 'vitest';
import { Happening } from '../../happening.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

/** Gives the term to another node for a long time, behind the back of the one that leads. */
async function giveTermAway(node: TestNode): Promise<void> {
  await onDatabase(node, (client) =>
    client.query(
      `UPDATE punctual.leases SET epoch = epoch + 1, holder = 'another', holder_url = 'http://127.0.0.1:1',
         session_pid = NULL, expires_at = clock_timestamp() + interval '1 hour'`,
    ),
  );
}

async function onDatabase<T>(node: TestNode, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(node.database.url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

it('a leader that is told by the database that its term is over hands nothing over and steps down', async () => {
  // Renewals are far apart, so it is the claim that finds out.
  const node = await nodeForTest({ settings: { leaseTtl: '60s' } });
  const worker = await ProtocolWorker.register(node);
  const claimed = worker.claimSilently(1, '5s').catch(() => []);
  await giveTermAway(node);
  await node.submit({ task: 'work' }).catch(() => undefined);
  expect(await claimed).toEqual([]);
  await expect.poll(() => node.node.leads(), { timeout: 5_000 }).toBe(false);
  const claims = await onDatabase(node, (client) => client.query('SELECT 1 FROM punctual.claims'));
  expect(claims.rowCount).toBe(0);
});

it('a worker that waits for work is told when the term ends, instead of that there is none', async () => {
  const node = await nodeForTest({ settings: { leaseTtl: '60s' } });
  const worker = await ProtocolWorker.register(node);
  const claimed = worker.claimSilently(1, '20s');
  claimed.catch(() => undefined);
  await giveTermAway(node);
  await node.submit({ task: 'work' }).catch(() => undefined);
  await expect(claimed).rejects.toThrow(/503.*NO_LEADER/);
});

it('a leader that stops sends those who wait for work elsewhere, and the next one serves them', async () => {
  const leader = await nodeForTest();
  const next = await nodeForTest({ database: leader.database });
  const atLeader = await ProtocolWorker.register(leader);
  const atNext = await ProtocolWorker.register(next);
  const claims = new Happening<void>();
  leader.node.server.server.on('request', ({ url }) => url?.endsWith('/claim') && claims.happen());
  const sentAway = atLeader.claimSilently(1, '20s').catch(String);
  const movedOn = atNext.claimSilently(1, '20s');
  await claims.times(2);
  await leader.node.stop();
  expect(await sentAway).toMatch(/503.*(SHUTTING_DOWN|NO_LEADER)/);
  const job = await next.submit({ task: 'work' });
  expect((await movedOn).map(({ jobId }) => jobId)).toEqual([job.id]);
});

it('what a claim has waited at earlier leaders counts towards its wait', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node);
  const answer = await node.ask('POST', `/v1/workers/${worker.id}/claim`, {
    body: { max: 1, wait: '60s' },
    headers: { 'punctual-waited': '60000' },
  });
  expect(answer).toMatchObject({ status: 200, body: { jobs: [] } });
});

it('a leader whose term went to another takes no result any more', async () => {
  const node = await nodeForTest({ settings: { leaseTtl: '60s' } });
  const worker = await ProtocolWorker.register(node);
  await node.submit({ task: 'work' });
  const job = await worker.claimOne();
  await giveTermAway(node);
  await expect(worker.succeed(job)).rejects.toThrow(/503/);
  const claims = await onDatabase(node, (client) => client.query('SELECT fence FROM punctual.claims'));
  expect(claims.rows).toEqual([{ fence: 1 }]);
});

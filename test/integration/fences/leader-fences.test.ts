import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import type { TestNode, TestNodeOptions } from '../../node-for-tests.js';
import { provenByRemoval } from './removal.js';

/** A node and whoever speaks to it, loaded anew. */
async function freshNode(options: TestNodeOptions = {}) {
  const { nodeForTest } = await import('../../node-for-tests.js');
  const { ProtocolWorker } = await import('../../protocol-worker.js');
  const { takeHint } = await import('../../../src/api/peers.js');
  const { takeHeartbeat } = await import('../../../src/api/workers.js');
  const node = await nodeForTest(options);
  return { node, ProtocolWorker, takeHint, takeHeartbeat };
}

async function onDatabase<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Resolves when a statement waits for a row that somebody else holds. */
async function somebodyWaits(node: TestNode): Promise<void> {
  await onDatabase(node.database.url, async (client) => {
    // In this database: other tests use the same server.
    const query = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    const waiting = async () => (await client.query(query)).rowCount;
    await expect.poll(waiting, { timeout: 5_000, interval: 10 }).toBeGreaterThan(0);
  });
}

provenByRemoval('claim-join', 'a late hint starts a job again that has ended', async () => {
  const { node, ProtocolWorker, takeHint } = await freshNode();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', delivery: 'at-most-once' });
  const waiting = await onDatabase(node.database.url, async (client) => {
    const columns = 'id, tenant, queue, needs, lane, concurrency_key AS key, rank, run_at::float8 AS "runAt"';
    return (await client.query(`SELECT ${columns} FROM punctual.jobs WHERE id = $1`, [id])).rows[0];
  });
  await worker.succeed(await worker.claimOne());
  await takeHint(node.node.context, 0, {
    jobs: [{ ...waiting, fence: 1, startBefore: null, sizeKib: 0 }],
    startBefore: null,
  });
  return (await worker.claimSilently(1, '300ms')).length > 0;
});

provenByRemoval('held-workflow', 'a step of a workflow that is on hold starts', async () => {
  const { node, ProtocolWorker } = await freshNode();
  const worker = await ProtocolWorker.register(node);
  await node.get('POST', '/v1/workflows', {
    body: { name: 'held', jobs: { a: { task: 'work', delay: '50ms' } } },
  });
  // As a leader leaves it that is killed before it has parked the steps.
  await onDatabase(node.database.url, (client) => client.query('UPDATE punctual.workflows SET held = true'));
  return (await worker.claimSilently(1, '500ms')).length > 0;
});

provenByRemoval('commit-first', 'a worker is told that its result counts before it is stored', async () => {
  const { node, ProtocolWorker } = await freshNode();
  const worker = await ProtocolWorker.register(node);
  await node.submit({ task: 'work' });
  const job = await worker.claimOne();
  const holder = new pg.Client(node.database.url);
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM punctual.claims FOR UPDATE');
  let told = false;
  const answered = worker.succeed(job).then(() => {
    told = true;
  });
  await somebodyWaits(node);
  const toldTooEarly = told;
  await holder.query('COMMIT');
  await answered;
  return toldTooEarly;
});

provenByRemoval('revoke-confirmed', 'an at-most-once job is handed to two workers', async () => {
  const { TestClock } = await import('../../test-clock.js');
  const clock = new TestClock();
  const settings = { heartbeatInterval: '1s', workerTimeout: '4s' };
  const { node, ProtocolWorker } = await freshNode({ clock, settings });
  const [first, second] = [await ProtocolWorker.register(node), await ProtocolWorker.register(node)];
  await node.submit({ task: 'work', delivery: 'at-most-once' });
  await first.claimSilently();
  // The first worker runs the job and lives, but its heartbeats were all made before the job arrived.
  for (let seconds = 0; seconds < 12; seconds += 1) {
    clock.advance(1_000);
    await Promise.all([first.heartbeat([]), second.heartbeat([])]);
    if (seconds === 3) await first.claimSilently(1, '10ms');
  }
  return (await second.claimSilently(1, '300ms')).length > 0;
});

provenByRemoval(
  'full-timeout',
  'a new leader takes a worker for dead that had nobody to speak to',
  async () => {
    const { TestClock } = await import('../../test-clock.js');
    const { createTestDatabase } = await import('../../database.js');
    const { TestNode } = await import('../../node-for-tests.js');
    const { ProtocolWorker } = await import('../../protocol-worker.js');
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const clock = new TestClock();
    const before = await TestNode.start({ clock, database });
    const worker = await ProtocolWorker.register(before);
    await before.submit({ task: 'work', delivery: 'at-most-once' });
    await worker.claimOne();
    await before.stop();
    // For longer than the worker's timeout there is no leader at all.
    clock.advance(60_000);
    const after = await TestNode.start({ clock, database });
    onTestFinished(() => after.stop());
    // Dead or not is decided by the first pass over the sessions, which the node runs when it begins to lead.
    await expect.poll(() => after.node.leads()).toBe(true);
    const workers = await after.get<{ data: { state: string }[] }>('GET', '/v1/workers');
    return workers.data[0]?.state === 'dead';
  },
);

provenByRemoval('heartbeat-epoch', 'a replaced leader orders the jobs of the new one stopped', async () => {
  const { node, ProtocolWorker } = await freshNode();
  const worker = await ProtocolWorker.register(node);
  const ofTheNewLeader = { jobId: STRANGER, fence: 1 };
  const answer = await worker.heartbeat([ofTheNewLeader], worker.welcome.epoch + 1).catch(() => null);
  return (answer?.stop.length ?? 0) > 0;
});

provenByRemoval('trust', 'a leader whose lease has run out tells a worker that it is unknown', async () => {
  const { node, takeHeartbeat } = await freshNode({ settings: { leaseTtl: '1s' } });
  const caller = { tenant: 'default', actor: 'test', operator: true };
  const body = { epoch: 1, running: [] };
  await expect.poll(() => node.node.leads()).toBe(true);
  // The process stands still for longer than a lease is trusted; what it does first when it goes on is to answer.
  block(900);
  const answer = takeHeartbeat(node.node.context, caller, { workerId: STRANGER, shard: 0 }, body);
  return answer.then(
    () => false,
    (error: { code?: string }) => error.code === 'WORKER_NOT_FOUND',
  );
});

const STRANGER = '0198c0de-0000-7000-8000-00000000beef';

/** Holds the thread, as a process that the machine does not let run. */
function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { task } from '../../src/core/task.js';
import type { Page, WorkerView } from '../../src/core/wire.js';
import { type ClonedDatabase, createTestDatabase } from '../database.js';
import { Door } from '../happening.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';

const SETTINGS = { heartbeatInterval: '200ms', workerTimeout: '2s' };

/** A leader and a follower over one database. */
async function cluster(): Promise<{ leader: TestNode; follower: TestNode }> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const leader = await nodeForTest({ database, settings: SETTINGS });
  await leader.get('GET', '/v1/workers');
  const follower = await nodeForTest({ database, settings: SETTINGS });
  return { leader, follower };
}

it('a thousand results that are awaited through a follower leave it as useful as before to everybody else', async () => {
  const { leader, follower } = await cluster();
  const door = new Door();
  const slow = task('slow', {}, async ({ n }: { n: number }) => {
    await door.opened;
    return n;
  });
  const quick = task('quick', {}, async () => 'done');
  await follower.work([slow, quick], { slots: 2_000 });
  const program = follower.connect();
  const numbers = Array.from({ length: 1_000 }, (_, n) => ({ n }));
  const handles = await program.submitMany(slow, numbers);
  const results = Promise.all(handles.map((handle) => handle.result()));
  results.catch(() => undefined);
  // The waits have come before the calm client: those that come later are served in turn.
  const calm = follower.connect();
  for (let call = 0; call < 20; call++) {
    const handle = await calm.submit(quick, {});
    expect((await follower.ask('GET', `/v1/jobs/${handle.id}/why`)).status).toBe(200);
    expect(await handle.result()).toBe('done');
  }
  const { data } = await leader.get<Page<WorkerView>>('GET', '/v1/workers');
  expect(data.map(({ state }) => state)).toEqual(['alive']);
  door.open();
  expect(await results).toEqual(numbers.map(({ n }) => n));
}, 30_000);

it('hundreds of calls that the leader is slow to answer keep no worker behind the same follower from being heard', async () => {
  const { leader, follower } = await cluster();
  const quick = task('quick', {}, async () => 'done');
  const worker = await follower.work([quick], { slots: 10 });
  const calm = follower.connect();
  await slowDownWorkerLists(follower.database as ClonedDatabase);
  let open = 400;
  const lists = Array.from({ length: open }, async () => {
    const { status } = await follower.ask('GET', '/v1/workers');
    open -= 1;
    return status;
  });
  let done = 0;
  while (open > 0) {
    const handle = await calm.submit(quick, {});
    expect(await handle.result()).toBe('done');
    done += 1;
  }
  expect(new Set(await Promise.all(lists))).toEqual(new Set([200]));
  // A report that waits behind the lists is answered when most of them are.
  expect(done).toBeGreaterThan(5);
  const { data } = await leader.get<Page<WorkerView>>('GET', '/v1/workers');
  expect(data.map(({ id, state }) => [id, state])).toEqual([[worker.status().workerId, 'alive']]);
}, 60_000);

/** From now on each read of a worker's row takes a while, which makes hundreds of lists take seconds. */
async function slowDownWorkerLists({ administratorUrl }: ClonedDatabase): Promise<void> {
  const client = new pg.Client({ connectionString: administratorUrl });
  await client.connect();
  await client.query(`
    CREATE POLICY slowly ON punctual.workers FOR SELECT USING (pg_sleep(0.05) IS NOT NULL);
    CREATE POLICY freely ON punctual.workers FOR INSERT WITH CHECK (true);
    CREATE POLICY changing ON punctual.workers FOR UPDATE USING (true);
    CREATE POLICY removing ON punctual.workers FOR DELETE USING (true);
    ALTER TABLE punctual.workers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`);
  await client.end();
}

it('who waits at a follower waits on under the next leader: another node, or the follower itself', async () => {
  const { leader, follower } = await cluster();
  const third = await nodeForTest({ database: follower.database, settings: SETTINGS });
  const others = [follower, third];
  const jobs = await Promise.all(others.map((node) => node.submit({ task: 'work', delay: '1h' })));
  const begun = performance.now();
  const waits = others.map((node, n) => node.get<Job>('GET', `/v1/jobs/${jobs[n]!.id}?wait=20s`));
  // The waits have reached the leader when it tells of the end of another job that is waited for after them.
  for (const node of others) {
    const { id } = await node.submit({ task: 'work', delay: '1h' });
    const ended = node.ended(id);
    await node.get('POST', `/v1/jobs/${id}/cancel`);
    await ended;
  }
  await leader.node.stop();
  for (const { id } of jobs) await third.get('POST', `/v1/jobs/${id}/cancel`);
  expect((await Promise.all(waits)).map(({ state }) => state)).toEqual(['cancelled', 'cancelled']);
  expect(performance.now() - begun).toBeLessThan(15_000);
}, 30_000);

it('a wait ends when its time is up, whatever has become of the leader', async () => {
  const { leader, follower } = await cluster();
  const { id } = await follower.submit({ task: 'work', delay: '1h' });
  const begun = performance.now();
  const wait = follower.get<Job>('GET', `/v1/jobs/${id}?wait=1500ms`);
  await leader.node.stop();
  expect((await wait).state).toBe('pending');
  expect(performance.now() - begun).toBeGreaterThanOrEqual(1_490);
  expect(performance.now() - begun).toBeLessThan(4_000);
});

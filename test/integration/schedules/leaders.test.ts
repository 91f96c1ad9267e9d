import { expect, it, onTestFinished } from 'vitest';
import { task } from '../../../src/core/task.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { until } from '../store/test-shard.js';
import { readLedger, ScheduleTester, SECOND } from './schedule-tester.js';

it('a schedule every second through ten changes of leader has each occurrence exactly once', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const runs: string[] = [];
  const note = task('note', (at: string) => void runs.push(at));
  let leader = await nodeForTest({ database });
  let standby = await nodeForTest({ database });
  await standby.work([note]);
  const made = await leader.get<{ createdAt: string }>('POST', '/v1/schedules', {
    body: { name: 'tick', task: 'note', every: '1s' },
  });
  for (let change = 0; change < 10; change++) {
    const others: TestNode = await nodeForTest({ database });
    await leader.node.stop();
    await until(() => standby.node.leads() || others.node.leads());
    [leader, standby] = standby.node.leads() ? [standby, others] : [others, standby];
    await leader.work([note]);
    const rows = (await readLedger(leader, 'tick')).length;
    await until(async () => (await readLedger(leader, 'tick')).length > rows);
  }
  await leader.get('POST', '/v1/schedules/tick/pause');
  await until(async () => (await readLedger(leader, 'tick')).every((row) => row.state !== 'pending'));
  const ledger = await readLedger(leader, 'tick');
  const since = Date.parse(made.createdAt);
  const ran = ledger.filter((row) => row.reason !== 'paused');
  expect(ran.length).toBeGreaterThanOrEqual(10);
  expect(ran.map((row) => (Date.parse(row.at) - since) / SECOND)).toEqual(ran.map((_, i) => i + 1));
  expect(ran.every((row) => row.state === 'ran')).toBe(true);
  // An occurrence counts as started when its job is claimed; the handler is called a moment later.
  await until(() => runs.length >= ran.length);
  expect(runs).toHaveLength(ran.length);
}, 120_000);

it('a leader that fires again what an earlier one fired makes nothing twice', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '10s', catchUp: 'all' });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s pending', '+20s pending']);
  const before = await tester.jobs();
  // As if the schedule's own progress had been lost and only the ledger were left.
  await tester.node.node.stop();
  await withClient(tester.database.url, (db) =>
    db.query('UPDATE punctual.schedules SET watermark = $1, fire_at = $1', [since]),
  );
  await tester.startNode();
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s pending', '+20s pending', '+30s pending']);
  expect((await tester.jobs()).slice(0, 2).map((job) => job.id)).toEqual(before.map((job) => job.id));
  expect(await tester.jobs()).toHaveLength(3);
});

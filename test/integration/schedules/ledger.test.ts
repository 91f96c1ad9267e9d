import { expect, it } from 'vitest';
import { nodeForTest } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { MINUTE, readLedger, ScheduleTester, SECOND } from './schedule-tester.js';

it('an occurrence that does not start within its bound is late: on record, counted once, with how late', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1h', lateAfter: '5s' });
  const since = Date.parse(createdAt);
  tester.clock.advance(60 * MINUTE);
  await tester.ledgerBecomes(since, ['+3600s pending']);
  tester.clock.advance(7 * SECOND);
  await tester.ledgerBecomes(since, ['+3600s late']);
  expect(await tester.stats()).toMatchObject({ occurrencesLate: 1, occurrencesMissed: 0 });
  await until(() => tester.warnings.includes('an occurrence of schedule tick is late'));
  const worker = await ProtocolWorker.register(tester.node);
  await worker.succeed(await worker.claimOne());
  expect(await tester.ledger()).toMatchObject([{ state: 'late', lateBy: 7 * SECOND }]);
  await tester.stopFor(MINUTE);
  const { body } = await tester.node.ask<string>('GET', '/metrics');
  expect(body).toContain('punctual_occurrences_late_total 1\n');
  expect(body).toContain('punctual_occurrences_missed_total 0\n');
});

it('one that starts in time is not late, whether anybody looks before or after it has ended', async () => {
  const tester = await ScheduleTester.start();
  const worker = await ProtocolWorker.register(tester.node);
  const { createdAt } = await tester.create({ every: '1h' });
  const since = Date.parse(createdAt);
  tester.clock.advance(60 * MINUTE);
  const job = await worker.claimOne();
  await tester.ledgerBecomes(since, ['+3600s ran']);
  await worker.succeed(job);
  tester.clock.advance(40 * SECOND);
  const judged = async () =>
    withClient(tester.database.url, async (db) => {
      const { rows } = await db.query('SELECT judge_at, late_by::int FROM punctual.occurrences');
      return rows;
    });
  await expect.poll(judged, { timeout: 10_000 }).toEqual([{ judge_at: null, late_by: expect.any(Number) }]);
  expect(await tester.lines(since)).toEqual(['+3600s ran']);
  expect(await tester.stats()).toMatchObject({ occurrencesLate: 0 });
});

it('a job that is cancelled before it starts leaves a skipped occurrence', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1h' });
  tester.clock.advance(60 * MINUTE);
  await until(async () => (await tester.jobs('pending')).length === 1);
  await tester.node.get('POST', `/v1/jobs/${(await tester.jobs())[0]!.id}/cancel`);
  tester.clock.advance(40 * SECOND);
  await tester.ledgerBecomes(Date.parse(createdAt), ['+3600s skipped cancelled']);
  expect(await tester.stats()).toMatchObject({ occurrencesLate: 0, occurrencesMissed: 0 });
});

it('an occurrence whose job was cancelled and deleted before it was judged is not late', async () => {
  const tester = await ScheduleTester.start();
  await tester.create({ every: '1h' });
  tester.clock.advance(60 * MINUTE);
  await until(async () => (await tester.jobs('pending')).length === 1);
  const ids = (await tester.jobs()).map(({ id }) => id);
  await tester.node.get('POST', '/v1/jobs/cancel', { body: { ids } });
  expect(await tester.node.get('POST', '/v1/jobs/delete', { body: { ids } })).toMatchObject({ changed: 1 });
  tester.clock.advance(40 * SECOND);
  await withClient(tester.database.url, async (db) => {
    const judged = async () => (await db.query('SELECT judge_at, state FROM punctual.occurrences')).rows;
    await expect.poll(judged, { timeout: 10_000 }).toEqual([{ judge_at: null, state: 'ran' }]);
  });
  expect(await tester.stats()).toMatchObject({ occurrencesLate: 0, occurrencesMissed: 0 });
});

it('the ledger is read by time; a range belongs to every time that it reaches into', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1m', catchUp: 'none' });
  const since = Date.parse(createdAt);
  await tester.stopFor(10 * MINUTE + 40 * SECOND);
  const range = '+60s…+600s missed downtime (10)';
  await tester.ledgerBecomes(since, [range]);
  tester.clock.advance(20 * SECOND);
  await tester.ledgerBecomes(since, [range, '+660s pending']);
  tester.clock.advance(MINUTE);
  await tester.ledgerBecomes(since, [range, '+660s late', '+720s pending']);
  const between = (from: number, to: number) =>
    tester.lines(since, `&from=${iso(createdAt, from)}&to=${iso(createdAt, to)}`);
  expect(await between(300, 400)).toEqual([range]);
  expect(await between(600, 660)).toEqual([range, '+660s late']);
  expect(await between(601, 700)).toEqual(['+660s late']);
  expect(await between(0, 59)).toEqual([]);
  const first = await tester.node.get<{ data: unknown[]; next: string }>(
    'GET',
    '/v1/schedules/tick/occurrences?limit=2',
  );
  expect(first).toMatchObject({ data: [{ state: 'pending' }, { state: 'late' }] });
  const second = await tester.node.get('GET', `/v1/schedules/tick/occurrences?limit=2&after=${first.next}`);
  expect(second).toMatchObject({ data: [{ state: 'missed', count: 10 }], next: null });
  const wrong = await tester.node.ask('GET', '/v1/schedules/tick/occurrences?after=x');
  expect(wrong).toMatchObject({ status: 422, body: { errors: [{ pointer: '/after' }] } });
});

it('jitter moves each occurrence by its own stable bit, and the ledger keeps its moment', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1m', jitter: '50s' });
  const since = Date.parse(createdAt);
  for (let i = 0; i < 11 * 4; i++) {
    tester.clock.advance(15 * SECOND);
    const due = Math.floor((tester.clock.now() - since - 50 * SECOND) / MINUTE);
    await until(async () => (await tester.ledger()).length >= due);
  }
  const jobs = (await tester.jobs()).slice(0, 10);
  const moved = jobs.map((job) => Date.parse(job.runAt) - Date.parse(job.scheduledAt!));
  expect(jobs.map((job) => (Date.parse(job.scheduledAt!) - since) / MINUTE)).toEqual(
    jobs.map((_, i) => i + 1),
  );
  for (const ms of moved) expect(ms).toBeGreaterThanOrEqual(0);
  for (const ms of moved) expect(ms).toBeLessThanOrEqual(50 * SECOND);
  expect(new Set(moved).size).toBeGreaterThan(5);
  expect(await tester.stats()).toMatchObject({ occurrencesMissed: 0 });
});

it('the ledger is kept as long as it is to be, also that of a deleted schedule', async () => {
  const tester = await ScheduleTester.start();
  await tester.create({ every: '1m', catchUp: 'none' });
  await tester.stopFor(10 * MINUTE + 40 * SECOND);
  await until(async () => (await tester.ledger()).length === 1);
  await tester.node.get('DELETE', '/v1/schedules/tick');
  expect(await readLedger(tester.node, 'tick')).toHaveLength(1);
  await tester.node.node.stop();
  tester.clock.advance(61 * MINUTE);
  const settings = { ledgerRetention: '1h' };
  const node = await nodeForTest({ database: tester.database, clock: tester.clock, settings });
  await until(async () => (await node.ask('GET', '/v1/schedules/tick/occurrences')).status === 404);
});

it('schedules that have nothing to do cost next to nothing', async () => {
  const tester = await ScheduleTester.start();
  await tester.create({ cron: '0 0 1 1 *' });
  await withClient(tester.database.url, (db) =>
    db.query(`
      INSERT INTO punctual.schedules (id, tenant, name, definition, paused, watermark, fire_at, created_at, created_by,
        changed_at, changed_by)
      SELECT gen_random_uuid(), tenant, 'idle-' || n, definition, false, watermark, fire_at + n, created_at, 'test',
        changed_at, 'test'
      FROM punctual.schedules, generate_series(1, 20000) n`),
  );
  const scans = () =>
    withClient(tester.database.url, async (db) => {
      await db.query('SELECT pg_stat_force_next_flush()');
      const { rows } = await db.query<{ scans: number }>(`
        SELECT sum(seq_scan + coalesce(idx_scan, 0))::int AS scans
        FROM pg_stat_user_tables WHERE relname IN ('schedules', 'occurrences')`);
      return rows[0]!.scans;
    });
  // Counts arrive late; but whoever asked again and again would never be quiet for so long.
  let [quietSince, seen] = [performance.now(), await scans()];
  const deadline = performance.now() + 40_000;
  while (performance.now() - quietSince < 6_000) {
    expect(performance.now()).toBeLessThan(deadline);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = await scans();
    if (now !== seen) [quietSince, seen] = [performance.now(), now];
  }
});

function iso(createdAt: string, seconds: number): string {
  return new Date(Date.parse(createdAt) + seconds * SECOND).toISOString();
}

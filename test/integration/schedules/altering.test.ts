import { expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { MINUTE, ScheduleTester, SECOND } from './schedule-tester.js';

/** A schedule every ten seconds whose first occurrence has been made ahead and is due in a second. */
async function madeAhead(rest: Record<string, unknown> = {}) {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '10s', ...rest });
  const since = Date.parse(createdAt);
  tester.clock.advance(9 * SECOND);
  await until(async () => (await tester.jobs('pending')).length === 1);
  return { tester, since, first: (await tester.jobs('pending'))[0]! };
}

it('a change withdraws what was made ahead; the new definition holds from the next occurrence on', async () => {
  const { tester, since, first } = await madeAhead({ payload: 'old' });
  await tester.change({ payload: 'new' });
  expect(await tester.node.job(first.id)).toMatchObject({ state: 'cancelled', error: { code: 'WITHDRAWN' } });
  tester.clock.advance(SECOND);
  const worker = await ProtocolWorker.register(tester.node);
  expect(await worker.claimOne()).toMatchObject({ payload: 'new' });
  await tester.ledgerBecomes(since, ['+10s ran']);
  expect(await tester.schedule()).toMatchObject({ version: 2, payload: 'new' });
});

it('a change of the timetable leaves no gap and no double', async () => {
  const { tester, since } = await madeAhead();
  await tester.change({ every: '4s' });
  tester.clock.advance(SECOND);
  tester.clock.advance(3 * SECOND);
  // Nothing at +10s any more; `every` still counts from creation.
  await tester.ledgerBecomes(since, ['+12s pending']);
  await tester.change({ cron: '* * * * *', timezone: 'Europe/Berlin' });
  expect((await tester.schedule()).every).toBeUndefined();
});

it('a change keeps what was due before it, under the old definition', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '10s', overlap: 'skip', payload: 'old' });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  await tester.change({ payload: 'new' });
  await tester.ledgerBecomes(since, ['+10s pending']);
  expect((await tester.jobs()).map((job) => job.payload)).toEqual(['old']);
});

it('a change to what is there already changes nothing', async () => {
  const { tester, first } = await madeAhead();
  expect(await tester.change({ every: '10s', jitter: null })).toMatchObject({ version: 1 });
  expect(await tester.node.job(first.id)).toMatchObject({ state: 'pending' });
});

it('a paused schedule skips its occurrences, and says so while it is paused and after', async () => {
  const { tester, since, first } = await madeAhead();
  await tester.steer('pause');
  expect(await tester.node.job(first.id)).toMatchObject({ state: 'cancelled' });
  expect(await tester.schedule()).toMatchObject({ paused: true, nextAt: null });
  tester.clock.advance(36 * SECOND);
  expect(await tester.lines(since)).toEqual(['+10s…+40s skipped paused (4)']);
  await tester.steer('resume');
  expect(await tester.lines(since)).toEqual(['+10s…+40s skipped paused (4)']);
  tester.clock.advance(5 * SECOND);
  await tester.ledgerBecomes(since, ['+10s…+40s skipped paused (4)', '+50s pending']);
  expect(await tester.stats()).toMatchObject({ occurrencesMissed: 0 });
});

it('a pause outlives the leader', async () => {
  const { tester, since } = await madeAhead();
  await tester.steer('pause');
  await tester.stopFor(MINUTE);
  expect(await tester.lines(since)).toEqual(['+10s…+60s skipped paused (6)']);
  expect((await tester.node.ask('POST', '/v1/schedules/tick/pause')).status).toBe(409);
});

it('a deleted schedule makes no more jobs; its ledger stays, and its name is free', async () => {
  const { tester, since, first } = await madeAhead();
  tester.clock.advance(9 * SECOND);
  await until(async () => (await tester.jobs('pending')).length === 2);
  await tester.node.get('DELETE', '/v1/schedules/tick');
  expect((await tester.jobs()).map((job) => job.state)).toEqual(['pending', 'cancelled']);
  expect((await tester.node.ask('GET', '/v1/schedules/tick')).status).toBe(404);
  tester.clock.advance(20 * SECOND);
  expect(await tester.lines(since)).toEqual(['+10s pending']);
  expect(await tester.node.job(first.id)).toMatchObject({ state: 'pending' });
  await tester.create({ every: '1h' });
  expect(await tester.lines(since)).toEqual([]);
});

it('a run by hand is a job beside the timetable, on record as such', async () => {
  const { tester, since } = await madeAhead();
  const job = (await tester.steer('run')) as Job;
  expect(job).toMatchObject({ schedule: 'tick', scheduledAt: null, createdBy: 'tester', state: 'pending' });
  // Two in the same millisecond are two.
  const another = (await tester.steer('run')) as Job;
  expect(another.id).not.toBe(job.id);
  tester.clock.advance(SECOND);
  await tester.ledgerBecomes(since, ['+9s pending manual', '+9.001s pending manual', '+10s pending']);
});

it('a job made ahead that somebody had start sooner keeps its occurrence', async () => {
  const { tester, since, first } = await madeAhead();
  const worker = await ProtocolWorker.register(tester.node);
  await tester.node.get('PATCH', `/v1/jobs/${first.id}`, { body: { runAt: new Date(since).toISOString() } });
  expect(await worker.claimOne()).toMatchObject({ jobId: first.id });
  await tester.change({ payload: 'new' });
  tester.clock.advance(SECOND);
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s pending']);
});

it('a moment that has passed may be asked for again, as a program does at every start', async () => {
  const tester = await ScheduleTester.start();
  const at = new Date(tester.clock.now() + MINUTE).toISOString();
  await tester.create({ at });
  tester.clock.advance(2 * MINUTE);
  await until(async () => (await tester.ledger()).length === 1);
  expect(await tester.change({ at })).toMatchObject({ version: 1, nextAt: null });
  const again = await tester.node.ask('POST', '/v1/schedules', { body: { name: 'tick', task: 'work', at } });
  expect(again).toMatchObject({ status: 409, body: { code: 'SCHEDULE_EXISTS' } });
  expect(await tester.jobs()).toHaveLength(1);
});

/** A schedule every second with five jobs made ahead, the fourth of which somebody has cancelled. */
async function oneOfFiveCancelled(rest: Record<string, unknown> = {}) {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1s', payload: 'old', ...rest });
  const since = Date.parse(createdAt);
  await until(async () => (await tester.jobs('pending')).length === 5);
  const fourth = (await tester.jobs('pending'))[3]!;
  await tester.node.get('POST', `/v1/jobs/${fourth.id}/cancel`);
  return { tester, since };
}

it('a change leaves no gap before a job made ahead that has gone already; after it the new one holds', async () => {
  const { tester, since } = await oneOfFiveCancelled();
  await tester.change({ payload: 'new' });
  tester.clock.advance(6 * SECOND);
  await tester.ledgerBecomes(since, [
    ...[1, 2, 3].map((s) => `+${s}s pending`),
    '+4s skipped cancelled',
    ...[5, 6].map((s) => `+${s}s pending`),
  ]);
  const made = (await tester.jobs('pending')).filter((job) => Date.parse(job.runAt) <= since + 6 * SECOND);
  expect(made.map((job) => job.payload)).toEqual(['old', 'old', 'old', 'new', 'new']);
});

it('a pause leaves no gap around a job made ahead that has gone already', async () => {
  const { tester, since } = await oneOfFiveCancelled();
  await tester.steer('pause');
  tester.clock.advance(7 * SECOND);
  const expected = [
    ...[1, 2, 3].map((s) => `+${s}s skipped paused`),
    '+4s skipped cancelled',
    '+5s…+7s skipped paused (3)',
  ];
  await tester.ledgerBecomes(since, expected);
  await tester.steer('resume');
  expect(await tester.lines(since)).toEqual(expected);
});

it('backfilling a pause that began around such a job loses nothing either', async () => {
  const { tester, since } = await oneOfFiveCancelled();
  await tester.steer('pause');
  const now = new Date(tester.clock.now()).toISOString();
  await tester.steer('backfill', { from: now, to: now, dryRun: true });
  tester.clock.advance(7 * SECOND);
  await tester.steer('resume');
  expect((await tester.lines(since)).at(-1)).toBe('+5s…+7s skipped paused (3)');
});

it('a change after downtime first decides all that was due, also what does not fit one transaction', async () => {
  const tester = await ScheduleTester.start();
  const payload = 'x'.repeat(250_000);
  const { createdAt } = await tester.create({ every: '10s', overlap: 'skip', catchUp: 'all', payload });
  const since = Date.parse(createdAt);
  await withClient(tester.database.url, (db) =>
    db.query(`UPDATE punctual.schedules SET fire_at = NULL,
      definition = replace(definition::text, '"skip"', '"allow"')::json`),
  );
  tester.clock.advance(1_000 * SECOND);
  await tester.change({ payload: null });
  const ledger = await tester.lines(since);
  expect(ledger).toHaveLength(100);
  const late = await withClient(tester.database.url, (db) =>
    db.query('SELECT count(*)::int AS jobs FROM punctual.jobs WHERE length(payload::text) > 1000'),
  );
  expect(late.rows).toEqual([{ jobs: 100 }]);
});

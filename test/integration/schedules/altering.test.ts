import { expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
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

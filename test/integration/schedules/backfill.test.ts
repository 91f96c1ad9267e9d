import { expect, it } from 'vitest';
import type { BackfillAnswer } from '../../../src/core/wire.js';
import { until } from '../store/test-shard.js';
import { MINUTE, ScheduleTester, SECOND } from './schedule-tester.js';

/** A schedule every minute that was down for ten of them and makes up for none. */
async function withGap() {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1m', catchUp: 'none' });
  const since = Date.parse(createdAt);
  await tester.stopFor(10 * MINUTE + 40 * SECOND);
  await tester.ledgerBecomes(since, ['+60s…+600s missed downtime (10)']);
  const moment = (seconds: number) => new Date(since + seconds * SECOND).toISOString();
  return { tester, since, moment };
}

it('a backfill runs the occurrences of a time that have no run on record, and splits their gap', async () => {
  const { tester, since, moment } = await withGap();
  const range = { from: moment(180), to: moment(300) };
  const dry = (await tester.steer('backfill', { ...range, dryRun: true })) as BackfillAnswer;
  expect(dry).toEqual({
    matched: 3,
    started: 0,
    dryRun: true,
    occurrences: [moment(180), moment(240), moment(300)],
  });
  expect(await tester.jobs()).toEqual([]);
  expect(await tester.steer('backfill', range)).toMatchObject({ matched: 3, started: 3, dryRun: false });
  expect(await tester.lines(since)).toEqual([
    '+60s…+120s missed downtime (2)',
    '+180s pending backfill',
    '+240s pending backfill',
    '+300s pending backfill',
    '+360s…+600s missed downtime (5)',
  ]);
  // What has a run is not run again.
  expect(await tester.steer('backfill', { from: moment(0), to: moment(310) })).toMatchObject({
    occurrences: [moment(60), moment(120)],
  });
  expect(await tester.lines(since, `&to=${moment(300)}`)).toEqual([
    '+60s pending backfill',
    '+120s pending backfill',
    '+180s pending backfill',
    '+240s pending backfill',
    '+300s pending backfill',
  ]);
  expect((await tester.jobs()).map((job) => job.scheduledAt)).toHaveLength(5);
  expect(await tester.stats()).toMatchObject({ occurrencesMissed: 10, occurrencesLate: 0 });
});

it('a backfill under another timetable leaves the rest of what was passed over on record', async () => {
  const { tester, since, moment } = await withGap();
  await tester.change({ every: '10m' });
  await tester.steer('backfill', { from: moment(600), to: moment(600) });
  expect(await tester.lines(since)).toEqual(['+60s…+599.999s missed downtime (9)', '+600s pending backfill']);
  await tester.change({ every: '15s' });
  await tester.steer('backfill', { from: moment(60), to: moment(60) });
  expect(await tester.lines(since)).toEqual([
    '+60s pending backfill',
    '+60.001s…+599.999s missed downtime (8)',
    '+600s pending backfill',
  ]);
});

it('a backfill may reach back before the schedule was made, and into a pause', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ cron: '* * * * *' });
  await tester.steer('pause');
  tester.clock.advance(3 * MINUTE);
  const now = tester.clock.now();
  const from = new Date(Date.parse(createdAt) - 2 * MINUTE).toISOString();
  const { matched } = (await tester.steer('backfill', {
    from,
    to: new Date(now).toISOString(),
  })) as BackfillAnswer;
  expect(matched).toBe(5);
  await tester.steer('resume');
  const states = (await tester.ledger()).map((row) => `${row.state} ${row.reason}`);
  expect(states).toEqual(Array.from({ length: 5 }, () => 'pending backfill'));
});

it('a backfill of a time that the ledger has forgotten is refused, also when the ledger is kept for longer by then', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1m', catchUp: 'all' });
  const since = Date.parse(createdAt);
  await tester.stopFor(3 * MINUTE + 40 * SECOND);
  await until(async () => (await tester.ledger()).length === 3);
  await tester.stopFor(61 * MINUTE, { ledgerRetention: '1h' });
  await until(async () => Date.parse((await tester.ledger())[0]?.at ?? '') > since + 3 * MINUTE);
  const moment = (ms: number) => new Date(since + ms).toISOString();
  const backfill = (from: number, name = 'tick') =>
    tester.node.ask('POST', `/v1/schedules/${name}/backfill`, {
      body: { from: moment(from), to: moment(10 * MINUTE), dryRun: true },
    });
  const refused = {
    status: 422,
    body: { errors: [{ pointer: '/from', detail: expect.stringContaining('forgotten') }] },
  };
  expect(await backfill(0)).toMatchObject(refused);
  await tester.stopFor(MINUTE, { ledgerRetention: '30d' });
  expect(await backfill(0)).toMatchObject(refused);
  expect(await backfill(6 * MINUTE)).toMatchObject({ status: 200, body: { matched: 0 } });
  // A schedule that is younger than all that is forgotten has not lost anything.
  await tester.create({ name: 'young', cron: '* * * * *' });
  expect(await backfill(0, 'young')).toMatchObject({ status: 200, body: { matched: 10 } });
});

it.each([
  ['a time that lies ahead', { from: '2026-01-01T00:00:00Z', to: '2999-01-01T00:00:00Z' }, '/to'],
  ['an end before its begin', { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' }, '/to'],
  ['more than 10,000 occurrences', { from: '2020-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z' }, '/to'],
  ['no begin', { to: '2026-01-01T00:00:00Z' }, '/from'],
  ['a field it does not know', { from: '2026-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z', dry: 1 }, '/dry'],
])('a backfill of %s is refused', async (_, body, pointer) => {
  const tester = await ScheduleTester.start();
  await tester.create({ cron: '* * * * *' });
  const answer = await tester.node.ask('POST', '/v1/schedules/tick/backfill', { body });
  expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer }] } });
});

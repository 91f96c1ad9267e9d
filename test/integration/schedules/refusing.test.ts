import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PreviewAnswer, ScheduleView } from '../../../src/core/wire.js';
import { TestNode } from '../../node-for-tests.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const GOOD = { name: 'nightly', task: 'work', cron: '30 2 * * *' };

it.each<[string, Record<string, unknown>, string, string]>([
  ['a bad expression', { cron: '61 * * * *' }, '/cron', 'minute'],
  ['a date that never comes', { cron: '0 0 30 2 *' }, '/cron', 'never'],
  ['an unknown zone', { timezone: 'Europe/Atlantis' }, '/timezone', 'IANA'],
  ['an offset in place of a zone', { timezone: '+02:00' }, '/timezone', 'IANA'],
  ['an interval below a second', { cron: undefined, every: '999ms' }, '/every', 'at least 1s'],
  ['something that is no interval', { cron: undefined, every: 'often' }, '/every', 'duration'],
  [
    'an end before its start',
    { startAt: '2030-01-02T00:00:00Z', endAt: '2030-01-01T00:00:00Z' },
    '/endAt',
    'before',
  ],
  ['an end before the first occurrence', { endAt: '2020-01-01T00:00:00Z' }, '/endAt', 'before'],
  ['a moment in the past', { cron: undefined, at: '2020-01-01T00:00:00Z' }, '/at', 'past'],
  ['two ways to say when', { every: '1h' }, '/every', 'exactly one'],
  ['no way to say when', { cron: undefined }, '/cron', 'exactly one'],
  [
    'a jitter as long as the interval',
    { cron: undefined, every: '10s', jitter: '10s' },
    '/jitter',
    'shorter',
  ],
  ['a jitter as long as the gaps', { cron: '* * * * *', jitter: '1m' }, '/jitter', 'shorter'],
  ['an unknown policy of catching up', { catchUp: 'some' }, '/catchUp', '"latest"'],
  ['a catch-up within nothing', { catchUp: {} }, '/catchUp/within', 'required'],
  ['an unknown policy of overlap', { overlap: 'maybe' }, '/overlap', '"skip"'],
  ['an unknown policy of DST', { dst: { gap: 'fall' } }, '/dst/gap', '"shift"'],
  ['an unknown field', { tsk: 'work' }, '/tsk', 'known'],
  ['a bound that is no bound', { lateAfter: '1ms' }, '/lateAfter', '1s'],
  ['nothing to run', { task: undefined }, '/task', 'one of "task", "target", "workflow" and "batch"'],
  ['a priority out of range', { priority: 10 }, '/priority', '1 to 9'],
  ['a key, which would be the same for every job', { key: 'once' }, '/key', 'known'],
  ['a name with a space', { name: 'a b' }, '/name', 'letters'],
])('%s is refused with the field and the reason', async (_, change, pointer, reason) => {
  const answer = await node.ask<{ errors: { pointer: string; detail: string }[] }>('POST', '/v1/schedules', {
    body: { ...GOOD, ...change },
  });
  expect(answer.status).toBe(422);
  expect(answer.body.errors[0]).toMatchObject({ pointer, detail: expect.stringContaining(reason) });
});

it('a change is refused like a creation, and leaves the schedule as it was', async () => {
  const tenant = node.newTenant();
  await tenant.get('POST', '/v1/schedules', { body: GOOD });
  for (const [body, pointer] of [
    [{ cron: 'x' }, '/cron'],
    [{ name: 'other' }, '/name'],
    [{}, ''],
    [{ cron: null }, '/cron'],
  ] as const) {
    const answer = await tenant.ask('PATCH', '/v1/schedules/nightly', { body });
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer }] } });
  }
  expect(await tenant.get('GET', '/v1/schedules/nightly')).toMatchObject({ version: 1, cron: GOOD.cron });
});

it("a name belongs to one schedule of a tenant, and to another tenant's as well", async () => {
  const [mine, theirs] = [node.newTenant(), node.newTenant()];
  await mine.get('POST', '/v1/schedules', { body: GOOD });
  const again = await mine.ask('POST', '/v1/schedules', { body: GOOD });
  expect(again).toMatchObject({ status: 409, body: { code: 'SCHEDULE_EXISTS' } });
  await theirs.get('POST', '/v1/schedules', { body: { ...GOOD, payload: 'theirs' } });
  await theirs.get('POST', '/v1/schedules/nightly/pause');
  expect(await mine.get('GET', '/v1/schedules/nightly')).toMatchObject({ paused: false, payload: null });
  await theirs.get('DELETE', '/v1/schedules/nightly');
  expect(await mine.get<{ data: ScheduleView[] }>('GET', '/v1/schedules')).toMatchObject({
    data: [{ name: 'nightly' }],
  });
});

it('a tenant cannot reach a schedule of another', async () => {
  const [mine, theirs] = [node.newTenant(), node.newTenant()];
  await mine.get('POST', '/v1/schedules', { body: GOOD });
  for (const [method, path, body] of [
    ['GET', ''],
    ['PATCH', '', { payload: 1 }],
    ['DELETE', ''],
    ['POST', '/pause'],
    ['POST', '/resume'],
    ['POST', '/run'],
    ['POST', '/backfill', { from: '2026-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z' }],
    ['GET', '/occurrences'],
  ] as const) {
    const answer = await theirs.ask(method, `/v1/schedules/nightly${path}`, body ? { body } : {});
    expect(answer, `${method} ${path}`).toMatchObject({ status: 404, body: { code: 'SCHEDULE_NOT_FOUND' } });
  }
});

it('schedules are listed by name, page by page', async () => {
  const tenant = node.newTenant();
  for (const name of ['c', 'a', 'b']) await tenant.get('POST', '/v1/schedules', { body: { ...GOOD, name } });
  const first = await tenant.get<{ data: ScheduleView[]; next: string }>('GET', '/v1/schedules?limit=2');
  expect(first.data.map((each) => each.name)).toEqual(['a', 'b']);
  const second = await tenant.get<{ data: ScheduleView[]; next: null }>(
    'GET',
    `/v1/schedules?limit=2&after=${first.next}`,
  );
  expect(second).toMatchObject({ data: [{ name: 'c' }], next: null });
});

describe('a preview', () => {
  const preview = (body: Record<string, unknown>) =>
    node.get<PreviewAnswer>('POST', '/v1/schedules/preview', { body });
  const berlin = { cron: '30 2 * * *', timezone: 'Europe/Berlin' };

  it.each([
    ['shift', ['2027-03-27T01:30:00.000Z', '2027-03-28T01:30:00.000Z', '2027-03-29T00:30:00.000Z']],
    ['skip', ['2027-03-27T01:30:00.000Z', '2027-03-29T00:30:00.000Z', '2027-03-30T00:30:00.000Z']],
  ])('shows a gap with %s', async (gap, expected) => {
    const { data } = await preview({ ...berlin, dst: { gap }, from: '2027-03-27T00:00:00Z', count: 3 });
    expect(data.map((each) => each.at)).toEqual(expected);
    if (gap === 'shift') expect(data[1]!.note).toContain('02:30');
  });

  it.each([
    ['first', ['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z']],
    ['last', ['2026-10-25T01:30:00.000Z', '2026-10-26T01:30:00.000Z']],
    ['both', ['2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z']],
  ])('shows an overlap with %s', async (overlap, expected) => {
    const { data } = await preview({ ...berlin, dst: { overlap }, from: '2026-10-24T12:00:00Z', count: 2 });
    expect(data.map((each) => each.at)).toEqual(expected);
    expect(data[0]!.note).toBeTruthy();
  });

  it('of an interval begins after it has passed once, or with its start', async () => {
    const from = '2026-01-01T00:00:00.000Z';
    expect((await preview({ every: '1h', from, count: 1 })).data).toEqual([
      { at: '2026-01-01T01:00:00.000Z' },
    ]);
    const startAt = '2026-01-01T00:10:00Z';
    expect((await preview({ every: '1h', startAt, from, count: 1 })).data).toEqual([
      { at: '2026-01-01T00:10:00.000Z' },
    ]);
  });

  it.each([
    [{ cron: 'x' }, '/cron'],
    [{ ...berlin, count: 0 }, '/count'],
    [{ ...berlin, count: 1_001 }, '/count'],
    [{ ...berlin, from: 'now' }, '/from'],
    [{}, '/cron'],
    [{ ...berlin, task: 'work' }, '/task'],
  ])('of %j is refused', async (body, pointer) => {
    const answer = await node.ask('POST', '/v1/schedules/preview', { body });
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer }] } });
  });
});

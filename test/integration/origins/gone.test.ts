import { expect, it } from 'vitest';
import type { Page, ScheduleView } from '../../../src/core/wire.js';
import { EventListener } from '../../event-listener.js';
import { withClient } from '../../postgres-client.js';
import { OriginTester } from './origin-tester.js';

const URL = 'https://gone.example.com/hook';

async function withSchedule(): Promise<OriginTester> {
  const tester = await OriginTester.start();
  const body = { name: 'tick', every: '1m', target: { type: 'http', url: URL }, retry: { maxAttempts: 1 } };
  await tester.node.get('POST', '/v1/schedules', { body });
  return tester;
}

const read = ({ node }: OriginTester) => node.get<ScheduleView>('GET', '/v1/schedules/tick');

it('a URL that is gone pauses the schedule that calls it, once, with an event and an entry of the audit', async () => {
  const tester = await withSchedule();
  const { node } = tester;
  const listener = await EventListener.open({
    url: node.url,
    apiKey: node.apiKey,
    query: '?type=schedule.changed',
  });
  await node.get('POST', '/v1/schedules/tick/run');
  await node.get('POST', '/v1/schedules/tick/run');
  const [first, second] = await tester.claim(2);
  await tester.fail(first!, { isGone: true });
  expect(await node.ended(first!.jobId)).toMatchObject({ state: 'failed' });
  await expect.poll(async () => (await read(tester)).paused).toBe(true);
  await tester.fail(second!, { isGone: true });
  expect(await node.ended(second!.jobId)).toMatchObject({ state: 'failed' });
  await expect.poll(() => listener.heard.filter(({ event }) => event === 'schedule.changed').length).toBe(1);
  expect(listener.heard.at(-1)!.data).toMatchObject({ schedule: 'tick', change: 'paused', reason: 'gone' });
  const audit = await node.get<Page<object>>('GET', '/v1/audit?action=schedule.pause');
  expect(audit.data).toMatchObject([
    { keyName: 'system', keyId: null, subject: 'tick', after: { paused: true, reason: 'gone' } },
  ]);
  listener.response.destroy();
});

it('the end of the attempt is on record although the schedule cannot be paused yet', async () => {
  const tester = await withSchedule();
  const { node } = tester;
  await node.get('POST', '/v1/schedules/tick/run');
  const [call] = await tester.claim(1);
  await withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM punctual.schedules FOR UPDATE');
    await tester.fail(call!, { isGone: true });
    expect(await node.ended(call!.jobId)).toMatchObject({ state: 'failed' });
    expect(await read(tester)).toMatchObject({ paused: false });
    await client.query('COMMIT');
  });
  await expect.poll(async () => (await read(tester)).paused).toBe(true);
});

it('a schedule that calls another URL by now goes on, and a job without a schedule changes none', async () => {
  const tester = await withSchedule();
  const { node } = tester;
  await node.get('POST', '/v1/schedules/tick/run');
  await tester.call(URL, { retry: { maxAttempts: 1 } });
  const calls = await tester.claim(2);
  const target = { type: 'http', url: 'https://other.example.com/hook' };
  await node.get('PATCH', '/v1/schedules/tick', { body: { target } });
  for (const call of calls) await tester.fail(call, { isGone: true });
  // What is decided about schedules is decided one after the other: a run shows that the pause was decided about.
  await node.get('POST', '/v1/schedules/tick/run');
  await tester.claim(1);
  expect(await read(tester)).toMatchObject({ paused: false });
});

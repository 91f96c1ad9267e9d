import { expect, it } from 'vitest';
import type { ListedJob } from '../../src/core/job.js';
import type { ListedSchedule, Page, ScheduleView } from '../../src/core/wire.js';
import { nodeForTest } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';

/** Postgres stores such JSON, and cannot look into it: see `punctual.readable`. */
const ODD = 'a\u0000b\ud800c';

it('a large error with NUL and half a surrogate pair spoils no list', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', retry: { maxAttempts: 1 } });
  const [assignment] = await worker.claim();
  const error = { message: `${ODD} went wrong`, code: 'ODD', stack: `${ODD}\n`.repeat(1_000) };
  await node.get('POST', `/v1/jobs/${id}/fail`, { body: { fence: assignment!.fence, error } });
  const { data } = await node.get<Page<ListedJob>>('GET', '/v1/jobs');
  expect(data).toMatchObject([{ id, error: { code: 'ODD' }, omitted: ['stack'] }]);
  expect(data[0]!.error!.message).toMatch(/went wrong$/);
  const whole = await node.get<Page<ListedJob>>('GET', '/v1/jobs?include=stack');
  expect(whole.data[0]!.error!.message).toBe(error.message);
});

it('a schedule whose payload holds them is read, listed and fired like any other', async () => {
  const node = await nodeForTest();
  const payload = { text: ODD, big: 'x'.repeat(10_000) };
  const made = await node.get<ScheduleView>('POST', '/v1/schedules', {
    body: { name: 'odd', task: 'work', every: '1h', payload },
  });
  expect(made.payload).toEqual(payload);
  expect((await node.get<ScheduleView>('GET', '/v1/schedules/odd')).payload).toEqual(payload);
  const { data } = await node.get<Page<ListedSchedule>>('GET', '/v1/schedules');
  expect(data).toMatchObject([{ name: 'odd', every: '1h', omitted: ['payload'] }]);
  const whole = await node.get<Page<ListedSchedule>>('GET', '/v1/schedules?include=payload');
  expect(whole.data).toMatchObject([{ name: 'odd', payload: { big: payload.big } }]);
  await node.get('POST', '/v1/schedules/odd/run');
  const worker = await ProtocolWorker.register(node);
  expect((await worker.claim())[0]!.payload).toEqual(payload);
});

import { expect, it } from 'vitest';
import type { Page, ScheduleView } from '../../../src/core/wire.js';
import { withClient } from '../../postgres-client.js';
import { ProtocolWorker } from '../../protocol-worker.js';
import { ScheduleTester, SECOND } from './schedule-tester.js';

/** Two schedules with an occurrence that waits for a running job; then one of them is no longer understood. */
async function oneNotUnderstood() {
  const tester = await ScheduleTester.start();
  const worker = await ProtocolWorker.register(tester.node);
  // The older one comes first whenever schedules are looked at.
  await tester.create({ name: 'a-broken-one', every: '10s', overlap: 'queue' });
  const { createdAt } = await tester.create({ every: '10s', overlap: 'queue' });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  const first = [await worker.claimOne(), await worker.claimOne()];
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s pending overlap']);
  await withClient(tester.database.url, (db) =>
    db.query(`UPDATE punctual.schedules SET definition = '{"task":"work","cron":"never"}'
      WHERE name = 'a-broken-one'`),
  );
  return { tester, worker, since, first };
}

it('a schedule that is no longer understood keeps no other from going on', async () => {
  const { tester, worker, since, first } = await oneNotUnderstood();
  for (const job of first) await worker.succeed(job);
  const second = await worker.claimOne();
  expect(await tester.node.job(second.jobId)).toMatchObject({
    schedule: 'tick',
    scheduledAt: new Date(since + 20 * SECOND).toISOString(),
  });
});

it('a schedule that is no longer understood is listed as it was written', async () => {
  const { tester } = await oneNotUnderstood();
  const { data } = await tester.node.get<Page<ScheduleView>>('GET', '/v1/schedules');
  expect(data.map(({ name }) => name)).toEqual(['a-broken-one', 'tick']);
  expect(data[0]).toMatchObject({ cron: 'never', nextAt: null });
});

it('a schedule that is no longer understood can be paused, looked at, changed and deleted', async () => {
  const { tester } = await oneNotUnderstood();
  const path = '/v1/schedules/a-broken-one';
  await tester.node.get('POST', `${path}/pause`);
  expect((await tester.node.ask('GET', `${path}/occurrences`)).status).toBe(200);
  expect(await tester.node.ask('PATCH', path, { body: { priority: 3 } })).toMatchObject({ status: 422 });
  const changed = await tester.node.get<ScheduleView>('PATCH', path, { body: { every: '1h' } });
  expect(changed).toMatchObject({ every: '1h', paused: true });
  await withClient(tester.database.url, (db) =>
    db.query(`UPDATE punctual.schedules SET definition = '{"task":"work","cron":"never"}'
      WHERE name = 'a-broken-one'`),
  );
  await tester.node.get('DELETE', path);
  expect((await tester.node.ask('GET', path)).status).toBe(404);
});

import { expect, it } from 'vitest';
import { ProtocolWorker } from '../../protocol-worker.js';
import { until } from '../store/test-shard.js';
import { ScheduleTester, SECOND } from './schedule-tester.js';

/** A schedule every ten seconds whose first job runs. */
async function running(overlap: string) {
  const tester = await ScheduleTester.start();
  const worker = await ProtocolWorker.register(tester.node);
  const { createdAt } = await tester.create({ every: '10s', overlap });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  const first = await worker.claimOne();
  await tester.ledgerBecomes(since, ['+10s ran']);
  return { tester, worker, since, first };
}

/** The same worker at the node that leads now. */
async function again(tester: ScheduleTester, running: readonly { jobId: string; fence: number }[]) {
  const worker = await ProtocolWorker.register(tester.node);
  for (const job of running) worker.held.set(job.jobId, job as never);
  return worker;
}

it('skip: an occurrence that is due while the job before runs is skipped, and the next one is not', async () => {
  const { tester, worker, since, first } = await running('skip');
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s skipped overlap']);
  await worker.succeed(first);
  tester.clock.advance(10 * SECOND);
  await worker.claimOne();
  await tester.ledgerBecomes(since, ['+10s ran', '+20s skipped overlap', '+30s ran']);
});

it('skip: decided when it is due and not before, by whoever leads then', async () => {
  const { tester, worker, since, first } = await running('skip');
  // Just before the next one is due nothing is decided, so the end of the job still counts.
  tester.clock.advance(9_900);
  await worker.succeed(first);
  tester.clock.advance(100);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s pending']);
  const second = await worker.claimOne();
  await tester.stopFor(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s ran', '+30s skipped overlap']);
  expect(await tester.node.job(second.jobId)).toMatchObject({ state: 'running' });
});

it('queue: occurrences wait for the job before and run in order, also through a change of leader', async () => {
  const { tester, worker, since, first } = await running('queue');
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s pending overlap']);
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s pending overlap', '+30s pending overlap']);
  expect(await tester.jobs()).toHaveLength(1);

  await tester.stopFor(0);
  const next = await again(tester, [first]);
  await next.report({ jobId: first.jobId, fence: first.fence, outcome: 'succeeded' });
  const second = await next.claimOne();
  expect((await tester.node.job(second.jobId)).scheduledAt).toBe(new Date(since + 20 * SECOND).toISOString());
  await next.claimNothing();
  await next.succeed(second);
  const third = await next.claimOne();
  expect((await tester.node.job(third.jobId)).scheduledAt).toBe(new Date(since + 30 * SECOND).toISOString());
  expect(await tester.jobs()).toHaveLength(3);
  expect(worker.id).not.toBe(next.id);
});

it('queue: the next one starts at once when the job before has ended', async () => {
  const { tester, worker, first } = await running('queue');
  tester.clock.advance(10 * SECOND);
  await until(async () => (await tester.ledger()).length === 2);
  await worker.succeed(first);
  // No time passes: the end of the job alone brings the next one.
  const second = await worker.claimOne();
  expect(second.jobId).not.toBe(first.jobId);
});

it('cancel-previous: a running job is told to stop, and the new one is made', async () => {
  const { tester, worker, since, first } = await running('cancel-previous');
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s pending']);
  expect((await worker.heartbeat()).stop).toMatchObject([{ jobId: first.jobId }]);
  await worker.report({ jobId: first.jobId, fence: first.fence, outcome: 'cancelled' });
  expect(await tester.node.job(first.jobId)).toMatchObject({ state: 'cancelled' });
  await worker.claimOne();
  await tester.ledgerBecomes(since, ['+10s ran', '+20s ran']);
});

it('cancel-previous: one that has not started is cancelled, also by the next leader', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '10s', overlap: 'cancel-previous' });
  const since = Date.parse(createdAt);
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s pending']);
  await tester.stopFor(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s skipped cancelled', '+20s pending']);
  expect((await tester.jobs()).map((job) => job.state)).toEqual(['cancelled', 'pending']);
});

it('allow: jobs run side by side', async () => {
  const { tester, worker, since } = await running('allow');
  tester.clock.advance(10 * SECOND);
  await worker.claimOne();
  await tester.ledgerBecomes(since, ['+10s ran', '+20s ran']);
});

it('queue: what waits does not start while the schedule is paused, and goes on when it is resumed', async () => {
  const { tester, worker, since, first } = await running('queue');
  tester.clock.advance(10 * SECOND);
  await tester.ledgerBecomes(since, ['+10s ran', '+20s pending overlap']);
  await tester.steer('pause');
  await worker.succeed(first);
  await worker.claimNothing();
  // Nor does the next leader start it.
  await tester.stopFor(0);
  const next = await again(tester, []);
  await next.claimNothing();
  expect(await tester.jobs()).toHaveLength(1);
  await tester.steer('resume');
  const second = await next.claimOne();
  expect((await tester.node.job(second.jobId)).scheduledAt).toBe(new Date(since + 20 * SECOND).toISOString());
});

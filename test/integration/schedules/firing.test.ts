import { expect, it } from 'vitest';
import type { Job } from '../../../src/core/job.js';
import type { OccurrenceView, Page, ScheduleView } from '../../../src/core/wire.js';
import { nodeForTest } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

it('a schedule makes a job for each occurrence, which starts on time and stands in the ledger', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node);
  const made = await node.get<ScheduleView>('POST', '/v1/schedules', {
    body: { name: 'tick', task: 'work', every: '1s', payload: { n: 1 } },
  });
  const first = Date.parse(made.createdAt) + 1_000;
  expect(made).toMatchObject({ nextAt: new Date(first).toISOString(), paused: false, version: 1 });

  const jobs: Job[] = [];
  for (let i = 0; i < 3; i++) {
    const assignment = await worker.claimOne();
    expect(assignment.payload).toEqual({ n: 1 });
    await worker.succeed(assignment);
    jobs.push(await node.job(assignment.jobId));
  }
  expect(jobs.map((job) => Date.parse(job.scheduledAt!))).toEqual([first, first + 1_000, first + 2_000]);
  for (const job of jobs) {
    expect(job).toMatchObject({ schedule: 'tick', createdBy: 'schedule:tick', scheduledBy: 'tester' });
    expect(Date.parse(job.attempts[0]!.claimedAt)).toBeGreaterThanOrEqual(Date.parse(job.scheduledAt!));
  }
  const ledger = await node.get<Page<OccurrenceView>>('GET', '/v1/schedules/tick/occurrences');
  expect(ledger.data.slice(-3).reverse()).toEqual(
    jobs.map((job) => ({ at: job.scheduledAt, state: 'ran', jobId: job.id, lateBy: job.lateBy })),
  );
  const mine = await node.get<Page<Job>>('GET', '/v1/jobs?schedule=tick&state=succeeded');
  expect(mine.data.map((job) => job.id).reverse()).toEqual(jobs.map((job) => job.id));
});

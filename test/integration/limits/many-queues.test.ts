import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { QueueShare } from '../../../src/dispatch/queue-share.js';
import { nodeForTest } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

const JOBS = 20_000;
const BATCH = 500;

interface Work {
  readonly statements: number;
  /** How often a queue was asked for its next job. */
  readonly looks: number;
}

/** What it takes to submit, start and end the jobs, spread over so many queues. */
async function workFor(queues: number): Promise<Work> {
  // The worker sends no heartbeats, and a machine may be slow.
  const node = await nodeForTest({ settings: { workerTimeout: '10m' } });
  const worker = await ProtocolWorker.register(node, { queues: ['*'], slots: BATCH });
  const statements = vi.spyOn(pg.Client.prototype, 'query');
  const looks = vi.spyOn(QueueShare.prototype, 'best');
  onTestFinished(() => {
    statements.mockRestore();
    looks.mockRestore();
  });
  const jobs = Array.from({ length: JOBS }, (_, i) => ({ task: 'work', queue: `q${i % queues}` }));
  for (let at = 0; at < JOBS; at += 10_000)
    await node.get('POST', '/v1/jobs/bulk', { body: { jobs: jobs.slice(at, at + 10_000) } });
  for (let done = 0; done < JOBS; ) {
    const claimed = await worker.claimSilently(BATCH);
    await worker.report(
      ...claimed.map(({ jobId, fence }) => ({ jobId, fence, outcome: 'succeeded' as const })),
    );
    done += claimed.length;
  }
  const work = { statements: statements.mock.calls.length, looks: looks.mock.calls.length };
  statements.mockRestore();
  looks.mockRestore();
  return work;
}

it('10,000 queues with two jobs each cost no more per job than ten queues', {
  timeout: 120_000,
}, async () => {
  const few = await workFor(10);
  const many = await workFor(10_000);
  console.log(`${JOBS} jobs in 10 queues: ${JSON.stringify(few)}; in 10,000 queues: ${JSON.stringify(many)}`);
  // Looking for lost hints goes by time, so the slower of two equal runs has a few statements more.
  expect(many.statements).toBeLessThan(few.statements * 1.3 + 50);
  expect(many.looks).toBeLessThan(few.looks * 1.5);
});

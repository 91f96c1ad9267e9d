import { afterEach, describe, expect, it } from 'vitest';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { task } from '../core/task.js';
import { HandlerRunner } from './runners/handler.js';
import { WorkerRuntime } from './worker-runtime.js';

const TIMEOUT_MS = 100;
const started: WorkerRuntime[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.stop()));
});

/** A worker that the leader has not heard of for longer than the worker timeout, and what it has started. */
async function silentWorker(): Promise<{ scheduler: MemoryScheduler; starts: number[] }> {
  const scheduler = new MemoryScheduler();
  const starts: number[] = [];
  scheduler.workerTimeout = `${TIMEOUT_MS}ms`;
  const note = task('note', (input: number) => void starts.push(input));
  const worker = new WorkerRuntime({ gateway: scheduler, runners: [new HandlerRunner([note])] });
  started.push(worker);
  await worker.start();
  scheduler.fail('heartbeat', 100_000);
  const since = performance.now();
  await scheduler.until(() => performance.now() - since > TIMEOUT_MS * 1.5);
  return { scheduler, starts };
}

/** Resolves when the worker has tried to send so many heartbeats more. */
async function tries(scheduler: MemoryScheduler, count: number): Promise<void> {
  const wanted = beats(scheduler) + count;
  await scheduler.until(() => beats(scheduler) >= wanted);
}

function beats({ calls }: MemoryScheduler): number {
  return calls.filter((call) => call === 'heartbeat').length;
}

describe('a worker that may have been taken for dead', () => {
  it('starts what it receives only when the leader has answered a heartbeat that lists it', async () => {
    const { scheduler, starts } = await silentWorker();
    const job = scheduler.submit('note', 1);
    await tries(scheduler, 4);
    expect(starts).toEqual([]);
    scheduler.fail('heartbeat', 0);
    await scheduler.resultOf(job);
    expect(starts).toEqual([1]);
    expect(scheduler.heartbeats.some(({ running }) => running.some(({ jobId }) => jobId === job.jobId))).toBe(
      true,
    );
  });

  it('never starts what the leader has given to another worker', async () => {
    const { scheduler, starts } = await silentWorker();
    const job = scheduler.submit('note', 1);
    await tries(scheduler, 2);
    scheduler.stop = [{ jobId: job.jobId, fence: job.fence }];
    scheduler.fail('heartbeat', 0);
    await scheduler.until(() => scheduler.reports.length > 0);
    expect(starts).toEqual([]);
  });
});

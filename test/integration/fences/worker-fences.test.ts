import { onTestFinished } from 'vitest';
import type { MemoryScheduler } from '../../memory-scheduler.js';
import { provenByRemoval } from './removal.js';

interface Scene {
  readonly scheduler: MemoryScheduler;
  /** What was started, as job and fence, in order. */
  readonly starts: string[];
  /** What was told to stop. */
  readonly stops: string[];
  /** Lets the handlers return. */
  letEnd(): void;
}

/** A worker whose handlers run until they are told to stop or let go, loaded anew; ended with the test. */
async function workingScene(): Promise<Scene> {
  const { MemoryScheduler } = await import('../../memory-scheduler.js');
  const { WorkerRuntime } = await import('../../../src/worker/worker-runtime.js');
  const { HandlerRunner } = await import('../../../src/worker/runners/handler.js');
  const { task } = await import('../../../src/core/task.js');
  const [scheduler, starts, stops] = [new MemoryScheduler(), [] as string[], [] as string[]];
  let letEnd!: () => void;
  const mayEnd = new Promise<void>((resolve) => {
    letEnd = resolve;
  });
  const work = task('work', async (_: unknown, { jobId, fence, signal }) => {
    starts.push(`${jobId}/${fence}`);
    signal.addEventListener('abort', () => stops.push(`${jobId}/${fence}`));
    await mayEnd;
  });
  const worker = new WorkerRuntime({
    gateway: scheduler,
    runners: [new HandlerRunner([work])],
    options: { slots: 5 },
  });
  await worker.start();
  onTestFinished(() => worker.stop());
  return { scheduler, starts, stops, letEnd };
}

/** Resolves when the worker has sent so many heartbeats more, and has taken in the answers to all but the last. */
async function heartbeats({ scheduler }: Scene, count: number): Promise<void> {
  const wanted = scheduler.heartbeats.length + count;
  await scheduler.until(() => scheduler.heartbeats.length >= wanted);
}

provenByRemoval('answer-epoch', 'a replaced leader stops a job that the new one counts on', async () => {
  const scene = await workingScene();
  const { scheduler, starts, stops } = scene;
  scheduler.epoch = 2;
  const job = scheduler.submit('work');
  await scheduler.until(() => starts.length === 1);
  await heartbeats(scene, 2);
  scheduler.epoch = 1;
  scheduler.stop = [{ jobId: job.jobId, fence: job.fence }];
  await heartbeats(scene, 3);
  return stops.length > 0;
});

provenByRemoval('answer-session', 'a job is started that went to a session which is over', async () => {
  const { scheduler, starts } = await workingScene();
  // The open claim is answered after the worker had to register anew, and what it brings has been lost with its session.
  const claim = scheduler.holdClaims();
  scheduler.submit('work');
  await claim.held;
  scheduler.forgetWorkers();
  await scheduler.until(() => scheduler.registrations.length === 2);
  await claim.letGo();
  return starts.length > 0;
});

provenByRemoval('start-once', 'an attempt that is offered twice starts twice', async () => {
  const { scheduler, starts, letEnd } = await workingScene();
  const job = scheduler.submit('work');
  await scheduler.until(() => starts.length === 1);
  scheduler.offer(job);
  const other = scheduler.submit('work');
  await scheduler.until(() => starts.includes(`${other.jobId}/1`));
  letEnd();
  return starts.filter((start) => start === `${job.jobId}/1`).length > 1;
});

provenByRemoval('stop-fence', 'an order about an old attempt stops the next one', async () => {
  const scene = await workingScene();
  const { scheduler, starts, stops } = scene;
  const job = scheduler.submit('work', null, { fence: 2, attempt: 2 });
  await scheduler.until(() => starts.length === 1);
  await heartbeats(scene, 2);
  scheduler.stop = [{ jobId: job.jobId, fence: 1 }];
  await heartbeats(scene, 3);
  return stops.length > 0;
});

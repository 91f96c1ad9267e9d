import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Door, Happening } from '../../test/happening.js';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import type { PunctualError } from '../core/errors.js';
import { task } from '../core/task.js';
import { lockFolder } from '../host/folder-lock.js';
import { decodeRecords } from './result-file.js';
import { HandlerRunner } from './runners/handler.js';
import type { WorkerEvents } from './worker-options.js';
import { WorkerRuntime } from './worker-runtime.js';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-keeping-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const double = task('double', (input: number) => input * 2);

function workerOf(scheduler: MemoryScheduler, keepResultsIn: string, events: WorkerEvents = {}) {
  const worker = new WorkerRuntime({
    gateway: scheduler,
    runners: [new HandlerRunner([double])],
    options: { keepResultsIn, events },
  });
  onTestFinished(() => worker.stop());
  return worker;
}

const recordsIn = (folder: string) => decodeRecords(readFileSync(join(folder, 'results'), 'utf8'));

/** Looks again and again for what no event tells, since it happens on disk. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A worker that could not deliver its result before its process ended. */
async function leaveResult(scheduler: MemoryScheduler, folder: string) {
  scheduler.fail('report', 10_000);
  const job = scheduler.submit('double', 21);
  const worker = workerOf(scheduler, folder);
  await worker.start();
  await until(() => worker.status().kept === 1);
  const { workerId } = worker.status();
  await worker.stop();
  return { job, workerId };
}

describe('a worker with a folder for its results', () => {
  it('writes nothing but its session while the scheduler answers promptly', async () => {
    const scheduler = new MemoryScheduler();
    const folder = newFolder();
    const worker = workerOf(scheduler, folder);
    await worker.start();
    for (let index = 0; index < 200; index++) await scheduler.resultOf(scheduler.submit('double', index));
    await until(() => recordsIn(folder).length > 0);
    expect(recordsIn(folder)).toEqual([{ kind: 'session', workerId: 'worker-1', shard: 0 }]);
    await worker.drain();
    expect(recordsIn(folder)).toEqual([]);
  });

  it('keeps a result once its report has failed, and lets go of it when it is answered', async () => {
    const scheduler = new MemoryScheduler();
    const folder = newFolder();
    scheduler.fail('report', 4);
    const job = scheduler.submit('double', 21);
    const worker = workerOf(scheduler, folder);
    await worker.start();
    await until(() => recordsIn(folder).some(({ kind }) => kind === 'kept'));
    await scheduler.resultOf(job);
    await until(() => recordsIn(folder).every(({ kind }) => kind === 'session'));
    expect(worker.status().kept).toBe(0);
  });

  it('keeps a result whose report is not answered for a while', async () => {
    const scheduler = new MemoryScheduler();
    const folder = newFolder();
    const door = new Door();
    const report = scheduler.report.bind(scheduler);
    scheduler.report = async (...args) => {
      await door.opened;
      return report(...args);
    };
    const job = scheduler.submit('double', 21);
    const worker = workerOf(scheduler, folder);
    await worker.start();
    await until(() => worker.status().kept === 1);
    door.open();
    await scheduler.resultOf(job);
    await until(() => worker.status().kept === 0);
  });

  it('delivers what the one before left, under its session, and only then registers in its place', async () => {
    const scheduler = new MemoryScheduler();
    const folder = newFolder();
    const { job, workerId } = await leaveResult(scheduler, folder);
    expect(scheduler.left).toEqual([]);
    scheduler.fail('report', 0);
    const callsBefore = scheduler.calls.length;
    await workerOf(scheduler, folder).start();
    expect(scheduler.accepted.get(job.jobId)).toMatchObject({ outcome: 'succeeded', result: 42 });
    expect(scheduler.reporters.at(-1)).toBe(workerId);
    expect(scheduler.calls.slice(callsBefore, callsBefore + 2)).toEqual(['report', 'register']);
    expect(scheduler.registrations.at(-1)!.replaces).toBe(workerId);
  });

  it('does not declare the session before dead while results of it are undelivered', async () => {
    const scheduler = new MemoryScheduler();
    const folder = newFolder();
    const { job } = await leaveResult(scheduler, folder);
    scheduler.fail('report', 2);
    const worker = workerOf(scheduler, folder);
    await worker.start();
    expect(scheduler.registrations.at(-1)!.replaces).toBeUndefined();
    expect(await scheduler.resultOf(job)).toMatchObject({ result: 42 });
    await until(() => worker.status().kept === 0);
  });

  it('works in memory while another worker has the folder, and takes it over when that one is gone', async () => {
    const scheduler = new MemoryScheduler();
    const folder = newFolder();
    const { job } = await leaveResult(scheduler, folder);
    const release = lockFolder(folder, 'lock.', () => new Error('held'));
    scheduler.fail('report', 0);
    const warnings = new Happening<PunctualError>();
    await workerOf(scheduler, folder, { onWarning: warnings.happen }).start();
    await warnings.times(1);
    expect(warnings.all[0]!.message).toContain('in use by another worker');
    expect(await scheduler.resultOf(scheduler.submit('double', 1))).toMatchObject({ result: 2 });
    expect(scheduler.accepted.has(job.jobId)).toBe(false);
    release();
    expect(await scheduler.resultOf(job)).toMatchObject({ result: 42 });
  });
});

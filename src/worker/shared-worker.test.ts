import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Happening } from '../../test/happening.js';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { task } from '../core/task.js';
import { HandlerRunner } from './runners/handler.js';
import type { WorkerOptions } from './worker-options.js';
import { WorkerRuntime } from './worker-runtime.js';

const whose = task('whose', (_: unknown, { tenant }) => tenant);

function workerOf(scheduler: MemoryScheduler, options: WorkerOptions): WorkerRuntime {
  const worker = new WorkerRuntime({ gateway: scheduler, runners: [new HandlerRunner([whose])], options });
  onTestFinished(() => worker.stop());
  return worker;
}

describe('a worker that serves all tenants', () => {
  it('says so when it registers, tells its handlers whose job it is, and the scheduler whose result', async () => {
    const scheduler = new MemoryScheduler();
    const jobs = ['a', 'b'].map((tenant) => scheduler.submit('whose', null, { tenant }));
    await workerOf(scheduler, { shared: true, queues: ['*'], rate: '5/1s' }).start();
    const results = await Promise.all(jobs.map((job) => scheduler.resultOf(job)));
    expect(results).toMatchObject([
      { tenant: 'a', result: 'a' },
      { tenant: 'b', result: 'b' },
    ]);
    expect(scheduler.registrations).toMatchObject([
      { shared: true, queues: ['*'], rate: { limit: 5, per: '1s' } },
    ]);
  });

  it('still says whose result it is after the result waited on disk for the next process', async () => {
    const scheduler = new MemoryScheduler();
    const keepResultsIn = mkdtempSync(join(tmpdir(), 'punctual-shared-'));
    onTestFinished(() => rmSync(keepResultsIn, { recursive: true, force: true }));
    const ended = new Happening<unknown>();
    scheduler.fail('report', 10_000);
    const events = { onJobEnded: ended.happen };
    const first = workerOf(scheduler, { shared: true, keepResultsIn, events });
    const job = scheduler.submit('whose', null, { tenant: 'a' });
    await first.start();
    await ended.times(1);
    await first.stop();

    scheduler.fail('report', 0);
    await workerOf(scheduler, { shared: true, keepResultsIn }).start();
    expect(await scheduler.resultOf(job)).toMatchObject({ tenant: 'a', result: 'a' });
  });
});

it('a worker of one tenant leaves the tenant to its key', async () => {
  const scheduler = new MemoryScheduler();
  const job = scheduler.submit('whose');
  await workerOf(scheduler, {}).start();
  expect(await scheduler.resultOf(job)).not.toHaveProperty('tenant');
  expect(scheduler.registrations[0]).not.toHaveProperty('shared');
});

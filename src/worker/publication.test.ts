import { afterEach, describe, expect, it } from 'vitest';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { invalid, type PunctualError } from '../core/errors.js';
import { task } from '../core/task.js';
import type { TaskInput } from '../core/wire.js';
import { HandlerRunner } from './runners/handler.js';
import type { WorkerOptions } from './worker-options.js';
import { WorkerRuntime } from './worker-runtime.js';

const started: WorkerRuntime[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.stop()));
});

const greet = task('greet', { retry: { maxAttempts: 4 }, queue: 'mail' }, () => 'hello');
const plain = task('plain', () => 'plain');

function workerOf(scheduler: MemoryScheduler, options: WorkerOptions) {
  const warnings: PunctualError[] = [];
  const events = { onWarning: (warning: PunctualError) => void warnings.push(warning) };
  const runners = [new HandlerRunner([greet, plain])];
  const worker = new WorkerRuntime({
    ...{ gateway: scheduler, runners },
    options: { name: 'w', log: false, events, ...options },
  });
  started.push(worker);
  return { worker, warnings };
}

describe('publishing', () => {
  it('tells what the code says about each task, before the worker registers', async () => {
    const scheduler = new MemoryScheduler();
    await workerOf(scheduler, { publish: true }).worker.start();
    expect(scheduler.published).toEqual([
      { name: 'greet', queue: 'mail', retry: { maxAttempts: 4 }, publishedBy: 'w' },
      { name: 'plain', publishedBy: 'w' },
    ]);
    expect(scheduler.calls.slice(0, 3)).toEqual(['publish', 'publish', 'register']);
  });

  it('may be told to overwrite, and is not done unless it is told to', async () => {
    const scheduler = new MemoryScheduler();
    await workerOf(scheduler, { publish: 'overwrite' }).worker.start();
    expect(scheduler.published[0]).toMatchObject({ name: 'greet', overwrite: true });
    const silent = new MemoryScheduler();
    await workerOf(silent, {}).worker.start();
    expect(silent.published).toEqual([]);
    expect(() => workerOf(silent, { publish: 'always' as never })).toThrow(/publish/);
  });

  it('waits while no node can serve', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('publish', 3);
    await workerOf(scheduler, { publish: true }).worker.start();
    expect(scheduler.published).toHaveLength(2);
  });

  it('goes on with the next task after one was refused, and the worker works', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('publish', 1, 'before', 'TASK_DEFINED');
    const { worker, warnings } = workerOf(scheduler, { publish: true });
    await worker.start();
    expect(scheduler.published).toMatchObject([{ name: 'plain' }]);
    expect(warnings).toMatchObject([{ code: 'TASK_DEFINED' }]);
    expect(await scheduler.resultOf(scheduler.submit('plain'))).toMatchObject({ result: 'plain' });
  });

  it('names the task that was refused, the field and the reason, and says what follows', async () => {
    class Refusing extends MemoryScheduler {
      override publish(input: TaskInput): Promise<void> {
        if (input.name !== 'greet') return super.publish(input);
        const detail = 'must be at most 20m';
        return Promise.reject(invalid([{ pointer: '/retry/backoff/max', detail }]));
      }
    }
    const scheduler = new Refusing();
    const { worker, warnings } = workerOf(scheduler, { publish: true });
    await worker.start();
    expect(warnings).toMatchObject([
      {
        code: 'INVALID_REQUEST',
        message:
          'The options of task greet are not published: retry.backoff.max: must be at most 20m. Jobs that are submitted by its name do not take them.',
        errors: [{ pointer: '/retry/backoff/max' }],
      },
    ]);
    expect(scheduler.published).toMatchObject([{ name: 'plain' }]);
  });

  it('is given up where the key may not, and the worker works', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('publish', 9, 'before', 'FORBIDDEN');
    const { worker, warnings } = workerOf(scheduler, { publish: true });
    await worker.start();
    expect(scheduler.calls.filter((call) => call === 'publish')).toHaveLength(1);
    const message = expect.stringContaining('task greet are not published, nor are those of its other tasks');
    expect(warnings).toMatchObject([{ code: 'FORBIDDEN', message }]);
    expect(await scheduler.resultOf(scheduler.submit('greet'))).toMatchObject({ result: 'hello' });
  });

  it('ends when the worker is stopped meanwhile', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('publish', 1_000);
    const { worker } = workerOf(scheduler, { publish: true });
    const starting = worker.start();
    await scheduler.until(() => scheduler.calls.length > 2);
    await worker.stop();
    await starting;
    expect(scheduler.registrations).toEqual([]);
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { type AnyTask, task } from '../core/task.js';
import { HandlerRunner } from './runners/handler.js';
import { WorkerRuntime } from './worker-runtime.js';

/** The test runner listens for the same events to fail the run; while the guard is tested it must not. */
const EVENTS = ['uncaughtException', 'unhandledRejection'] as const;
const saved = new Map<string, ((...args: unknown[]) => void)[]>();

beforeEach(() => {
  for (const event of EVENTS) {
    saved.set(event, process.rawListeners(event) as ((...args: unknown[]) => void)[]);
    process.removeAllListeners(event);
  }
});

afterEach(() => {
  for (const event of EVENTS) for (const listener of saved.get(event)!) process.on(event, listener);
});

/** Runs one bad job beside a long good one in a guarded worker. */
async function runGuarded(bad: AnyTask) {
  const scheduler = new MemoryScheduler();
  const warnings: string[] = [];
  let finishGood!: () => void;
  const finished = new Promise<void>((resolve) => {
    finishGood = resolve;
  });
  const good = task('good', () => finished.then(() => 'fine'));
  const worker = new WorkerRuntime({
    gateway: scheduler,
    runners: [new HandlerRunner([bad, good])],
    options: { events: { onWarning: (warning) => warnings.push(warning.message) } },
  });
  const goodJob = scheduler.submit('good');
  const badJob = scheduler.submit('bad');
  const exit = process.exit;
  const end = worker.run();
  const result = await scheduler.resultOf(badJob);
  return {
    result,
    warnings,
    async finish() {
      finishGood();
      expect(await scheduler.resultOf(goodJob)).toMatchObject({ outcome: 'succeeded', result: 'fine' });
      await worker.drain();
      expect(await end).toBe('drained');
      expect(process.exit).toBe(exit);
      for (const event of EVENTS) expect(process.listenerCount(event)).toBe(0);
    },
  };
}

describe.sequential('a guarded process survives a handler that', () => {
  it('calls process.exit()', async () => {
    const run = await runGuarded(
      task('bad', async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        process.exit(3);
      }),
    );
    expect(run.result).toMatchObject({
      outcome: 'failed',
      error: { message: expect.stringContaining('process.exit(3)') },
    });
    await run.finish();
  });

  it('calls process.exit() and swallows what follows from it', async () => {
    const run = await runGuarded(
      task('bad', () => {
        try {
          process.exit();
        } catch {
          return 'nothing happened';
        }
      }),
    );
    expect(run.result).toMatchObject({ outcome: 'failed' });
    await run.finish();
  });

  it('throws where nobody can catch it', async () => {
    const run = await runGuarded(
      task('bad', () => {
        setTimeout(() => {
          throw new Error('from a timer');
        }, 1);
        return new Promise(() => undefined);
      }),
    );
    expect(run.result).toMatchObject({ outcome: 'failed', error: { message: 'from a timer' } });
    await run.finish();
  });

  it('leaves a rejection unhandled while it runs', async () => {
    const run = await runGuarded(
      task('bad', async () => {
        void Promise.reject(new Error('forgotten'));
        await new Promise(() => undefined);
      }),
    );
    expect(run.result).toMatchObject({ outcome: 'failed', error: { message: 'forgotten' } });
    await run.finish();
  });

  it('throws and rejects after it has ended', async () => {
    const run = await runGuarded(
      task('bad', () => {
        setTimeout(() => {
          void Promise.reject(new Error('late'));
          throw new Error('later');
        }, 5);
        return 'done';
      }),
    );
    expect(run.result).toMatchObject({ outcome: 'succeeded', result: 'done' });
    await expect.poll(() => run.warnings.length).toBe(2);
    expect(run.warnings[0]).toContain('after its attempt had ended');
    await run.finish();
  });
});

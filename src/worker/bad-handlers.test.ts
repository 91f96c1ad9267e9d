import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { SETTINGS } from '../core/config.js';
import type { JobError } from '../core/job.js';
import { type AnyTask, PermanentError, task } from '../core/task.js';
import type { AttemptResult } from '../core/wire.js';
import { HandlerRunner } from './runners/handler.js';
import type { WorkerOptions } from './worker-options.js';
import { WorkerRuntime } from './worker-runtime.js';

/** Runs one job of the task beside a good one, and gives the bad one's result once both are through. */
async function resultBesideGood(
  bad: AnyTask,
  { payload = null as unknown, name = bad.name, options = {} as WorkerOptions } = {},
): Promise<AttemptResult> {
  const scheduler = new MemoryScheduler();
  const good = task('good', async () => 'fine');
  const worker = new WorkerRuntime({
    gateway: scheduler,
    runners: [new HandlerRunner([bad, good])],
    options,
  });
  const badJob = scheduler.submit(name, payload);
  const goodJob = scheduler.submit('good');
  await worker.start();
  const result = await scheduler.resultOf(badJob);
  expect(await scheduler.resultOf(goodJob)).toMatchObject({ outcome: 'succeeded', result: 'fine' });
  await worker.drain();
  return result;
}

describe('a handler that', () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const hostile = {
    get message() {
      throw new Error('no');
    },
    get code() {
      throw new Error('no');
    },
  };

  it.each([
    ['throws an Error', new Error('broken'), 'broken'],
    ['throws a text', 'just text', 'a string was thrown: just text'],
    ['throws nothing', undefined, 'undefined was thrown'],
    ['throws an object', { a: 1 }, 'an object that is not an Error was thrown: {"a":1}'],
    ['throws what cannot be written', circular, 'an object that is not an Error was thrown'],
    ['throws what cannot be read', hostile, 'cannot be read'],
  ])('%s fails its job, which may be tried again', async (_, thrown, message) => {
    for (const bad of [
      task('bad', () => {
        throw thrown;
      }),
      task('bad', async () => {
        throw thrown;
      }),
    ]) {
      const result = await resultBesideGood(bad);
      expect(result).toMatchObject({
        outcome: 'failed',
        error: { message: expect.stringContaining(message) },
      });
      expect(result).not.toHaveProperty('retryable');
    }
  });

  it('throws an error with causes reports their stacks and the first code', async () => {
    const refused = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' });
    const several = new AggregateError([refused, new Error('second')], 'both addresses failed');
    const outer = new Error('fetch failed', { cause: several });
    // A circle must not keep the worker busy.
    refused.cause = outer;
    const { error } = (await resultBesideGood(
      task('bad', () => {
        throw outer;
      }),
    )) as { error: JobError };
    expect(error).toMatchObject({ message: 'fetch failed', code: 'ECONNREFUSED' });
    expect(error.stack).toMatch(/^Error: fetch failed/);
    const causes = [...error.stack!.matchAll(/^Caused by: (.*)$/gm)].map(([, what]) => what);
    expect(causes).toEqual([
      'AggregateError: both addresses failed',
      'Error: connect refused',
      'Error: second',
    ]);
  });

  it("keeps its own code, and a long chain of causes stays within the error's limit", async () => {
    let cause: unknown = 'the first';
    for (let i = 0; i < 100; i++)
      cause = Object.assign(new Error(`${i} ${'x'.repeat(4_000)}`, { cause }), { code: 'E' });
    const outer = Object.assign(new Error('outer', { cause }), { code: 'MINE' });
    const { error } = (await resultBesideGood(
      task('bad', () => {
        throw outer;
      }),
    )) as { error: JobError };
    expect(error.code).toBe('MINE');
    expect(Buffer.byteLength(error.stack!)).toBeLessThanOrEqual(SETTINGS.maxError.default / 3);
    expect(error.stack!.match(/^Caused by: /gm)).toHaveLength(5);
  });

  it("uses Node's fetch in vain has the code of the connection", async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const result = await resultBesideGood(
      task('bad', () => fetch(`http://127.0.0.1:${port}/`).then(() => 1)),
    );
    expect(result).toMatchObject({ error: { message: 'fetch failed', code: 'ECONNREFUSED' } });
  });

  it.each([
    ['a BigInt', 1n, 'RESULT_NOT_JSON'],
    ['a circle', circular, 'RESULT_NOT_JSON'],
    ['a function', () => 1, 'RESULT_NOT_JSON'],
    ['a symbol', Symbol('s'), 'RESULT_NOT_JSON'],
    ['too much', 'x'.repeat(300), 'RESULT_TOO_LARGE'],
  ])('returns %s fails its job for good', async (_, returned, code) => {
    const result = await resultBesideGood(
      task('bad', async () => returned),
      { options: { maxResultBytes: 200 } },
    );
    expect(result).toMatchObject({ outcome: 'failed', retryable: false, error: { code } });
  });

  it.each([
    // A result that is null is left out.
    ['nothing', undefined, undefined],
    ['not a number', Number.NaN, undefined],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['nested nothing', { a: undefined, b: 1 }, { b: 1 }],
  ])('returns %s succeeds with what JSON makes of it', async (_, returned, expected) => {
    const result = await resultBesideGood(task('odd', () => returned));
    expect(result).toMatchObject({
      outcome: 'succeeded',
      ...(expected !== undefined && { result: expected }),
    });
    expect('result' in result).toBe(expected !== undefined);
  });

  it('changes its result after returning it does not change the report', async () => {
    const result = await resultBesideGood(
      task('late', () => {
        const answer = { value: 1 };
        queueMicrotask(() => {
          answer.value = 2;
        });
        return answer;
      }),
    );
    expect(result).toMatchObject({ result: { value: 1 } });
  });

  it('says that trying again is useless fails its job for good', async () => {
    const result = await resultBesideGood(
      task('hopeless', () => {
        throw new PermanentError('no such customer', { code: 'NO_CUSTOMER' });
      }),
    );
    expect(result).toMatchObject({ outcome: 'failed', retryable: false, error: { code: 'NO_CUSTOMER' } });
  });

  it('throws a giant error has it cut', async () => {
    const result = await resultBesideGood(
      task('giant', () => {
        throw new Error('ä'.repeat(100_000));
      }),
    );
    expect(Buffer.byteLength(JSON.stringify((result as { error: unknown }).error))).toBeLessThan(16 * 1024);
  });

  it('the worker does not have fails the job for good and names those it has', async () => {
    const result = await resultBesideGood(
      task('known', () => 1),
      { name: 'unknown' },
    );
    expect(result).toMatchObject({
      outcome: 'failed',
      retryable: false,
      error: { code: 'UNKNOWN_HANDLER', message: expect.stringContaining('known') },
    });
  });

  it('gets a payload that does not fit its schema is not called', async () => {
    let called = false;
    const strict = task('strict', { input: z.object({ n: z.number() }) }, () => {
      called = true;
    });
    const result = await resultBesideGood(strict, { payload: { n: 'one' } });
    expect(result).toMatchObject({
      outcome: 'failed',
      retryable: false,
      error: { code: 'INVALID_PAYLOAD', message: expect.stringContaining('/payload/n') },
    });
    expect(called).toBe(false);
  });

  it('gets what its schema makes of the payload', async () => {
    const dated = task('dated', { input: z.object({ at: z.coerce.date() }) }, ({ at }) =>
      at.getUTCFullYear(),
    );
    const result = await resultBesideGood(dated, { payload: { at: '2026-01-01T00:00:00Z' } });
    expect(result).toMatchObject({ outcome: 'succeeded', result: 2026 });
  });
});

describe('what a handler tells while it runs', () => {
  it('reaches the scheduler before its result: log lines in order, progress with the last word', async () => {
    const scheduler = new MemoryScheduler();
    const telling = task('telling', async (_: unknown, { log, progress }) => {
      log('first');
      log.warn({ second: 2 });
      for (let i = 1; i <= 50; i++) void progress(i / 50, `row ${i}`);
      await progress(7);
      log.error('third');
    });
    const worker = new WorkerRuntime({ gateway: scheduler, runners: [new HandlerRunner([telling])] });
    const job = scheduler.submit('telling');
    await worker.start();
    await scheduler.resultOf(job);
    expect(scheduler.logs.map(({ level, message }) => `${level} ${message}`)).toEqual([
      'info first',
      'warn { second: 2 }',
      'error third',
    ]);
    expect(scheduler.progressReports.length).toBeLessThan(4);
    expect(scheduler.progressReports.at(-1)).toMatchObject({ fence: 1, progress: 1 });
    expect(scheduler.calls.lastIndexOf('log')).toBeLessThan(scheduler.calls.indexOf('report'));
    await worker.drain();
  });

  it('is bounded, and never fails the job if it cannot be delivered', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('log', 100, 'before', 'INTERNAL');
    scheduler.fail('progress', 100, 'before', 'INTERNAL');
    const chatty = task('chatty', async (_: unknown, { log, progress }) => {
      for (let i = 0; i < 1_000; i++) log('x'.repeat(1_000));
      await progress(0.5);
      return 'done';
    });
    const options = { maxLogBytes: 10_000 };
    const worker = new WorkerRuntime({ gateway: scheduler, runners: [new HandlerRunner([chatty])], options });
    const job = scheduler.submit('chatty');
    await worker.start();
    expect(await scheduler.resultOf(job)).toMatchObject({ outcome: 'succeeded', result: 'done' });
    expect(scheduler.calls.filter((call) => call === 'log').length).toBeLessThan(5);
    await worker.drain();
  });

  it('is sent again when the scheduler was away for a moment', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.fail('log', 1, 'before', 'NO_LEADER');
    const telling = task('telling', (_: unknown, { log }) => log('kept'));
    const worker = new WorkerRuntime({ gateway: scheduler, runners: [new HandlerRunner([telling])] });
    const job = scheduler.submit('telling');
    await worker.start();
    await scheduler.resultOf(job);
    expect(scheduler.logs.map((line) => line.message)).toEqual(['kept']);
    await worker.drain();
  });
});

describe('a listener that throws', () => {
  it('harms neither the job it was told of nor the next one', async () => {
    const warnings: string[] = [];
    const fail = () => {
      throw new Error('the listener is broken');
    };
    const events = {
      onJobStarted: fail,
      onJobEnded: fail,
      onWarning: (error: Error) => warnings.push(error.message),
    };
    const result = await resultBesideGood(
      task('watched', () => 'done'),
      { options: { events } },
    );
    expect(result).toMatchObject({ outcome: 'succeeded', result: 'done' });
    expect(warnings).toEqual(Array(4).fill('the listener is broken'));
  });
});

import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { MemoryLog } from '../../test/memory-log.js';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { TestClock } from '../../test/test-clock.js';
import { PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { type AnyTask, PermanentError, task } from '../core/task.js';
import { UnreachableError } from '../transport/http-transport.js';
import { HandlerRunner } from './runners/handler.js';
import { WorkerLog } from './worker-log.js';
import type { EndedAttempt, WorkerOptions } from './worker-options.js';
import { WorkerRuntime } from './worker-runtime.js';

const URLS = ['http://a:1', 'http://b:1'];

function unreachable(url: string, code = 'ECONNREFUSED'): UnreachableError {
  const cause = Object.assign(new Error(`connect ${code}`), { code });
  return new UnreachableError(
    `${url} cannot be reached`,
    { url, sent: false, timedOut: false, reason: code },
    cause,
  );
}

function workerLog() {
  const clock = new TestClock();
  const log = new MemoryLog();
  return { clock, log, worker: new WorkerLog({ log, name: 'w', urls: URLS, clock }) };
}

describe('the log of a worker that reaches nobody', () => {
  it('names every address and why it did not answer, again every half minute, until one does', () => {
    const { clock, log, worker } = workerLog();
    worker.warning(unreachable(URLS[0]!));
    expect(log.lines).toEqual([]);
    worker.warning(unreachable(URLS[1]!, 'ENOTFOUND'));
    expect(log.lines).toEqual([
      {
        level: 'warn',
        message: expect.stringContaining('cannot be reached yet'),
        fields: {
          worker: 'w',
          urls: URLS,
          code: 'UNREACHABLE',
          why: ['http://a:1: connect ECONNREFUSED', 'http://b:1: connect ENOTFOUND'],
        },
      },
    ]);
    for (let second = 0; second < 70; second++) {
      clock.advance(1_000);
      worker.warning(unreachable(URLS[second % 2]!));
    }
    expect(log.lines.map(({ fields }) => fields.for)).toEqual([undefined, '30s', '1m']);
    worker.registered('id');
    expect(log.messages('info')).toEqual([
      'registered; waiting for jobs',
      'in contact with the scheduler again',
    ]);
  });

  it('says nothing of a change of leaders, and says what is lost when it lasts', () => {
    const { clock, log, worker } = workerLog();
    worker.registered('id');
    const noLeader = new PunctualError('NO_LEADER', 'The shard has no leader at the moment.');
    worker.warning(noLeader);
    clock.advance(900);
    worker.warning(noLeader);
    worker.inContact();
    expect(log.messages()).toEqual(['registered; waiting for jobs']);
    worker.warning(noLeader);
    clock.advance(1_000);
    worker.warning(noLeader);
    expect(log.lines.at(-1)).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('lost contact'),
      fields: { code: 'NO_LEADER', error: noLeader.message },
    });
    clock.advance(4_000);
    worker.inContact();
    expect(log.lines.at(-1)).toMatchObject({
      message: expect.stringContaining('again'),
      fields: { after: '5s' },
    });
  });

  it('repeats other warnings at most every ten seconds', () => {
    const { clock, log, worker } = workerLog();
    const busy = new PunctualError('TOO_BUSY', 'The node has too much to do.');
    for (let second = 0; second < 21; second++) {
      worker.warning(busy);
      clock.advance(1_000);
    }
    expect(log.messages('warn')).toEqual(Array(3).fill(busy.message));
  });

  it('tells of a hook that fails at most every ten seconds, whatever it throws, and not at any length', () => {
    const { clock, log, worker } = workerLog();
    for (let second = 0; second < 15; second++) {
      worker.hookFailed('started', new Error(`${second} ${'x'.repeat(10_000)}`));
      clock.advance(1_000);
    }
    worker.hookFailed('ended', new Error('other'));
    const told = log.lines.map(({ fields }) => fields as { hook: string; error: string });
    expect(told.map(({ hook }) => hook)).toEqual(['started', 'started', 'ended']);
    expect(told[0]!.error).toHaveLength(500);
  });
});

async function resultIn(
  tasks: AnyTask[],
  options: WorkerOptions,
  change = {},
  end: 'drain' | 'stop' = 'stop',
) {
  const scheduler = new MemoryScheduler();
  const job = scheduler.submit(tasks[0]!.name, 'x', change);
  const worker = new WorkerRuntime({ gateway: scheduler, runners: [new HandlerRunner(tasks)], options });
  await worker.start();
  const result = await scheduler.resultOf(job);
  await worker[end]();
  return result;
}

const failing = task('failing', () => {
  throw new PermanentError('no luck', { code: 'LUCKLESS' });
});
const deaf = task('deaf', () => new Promise(() => undefined));
const fine = task('fine', () => 'done');

describe('the log of a worker', () => {
  it('tells of its life and of every attempt that fails, with the stack at debug', async () => {
    const log = new MemoryLog();
    await resultIn([failing], { name: 'w', log }, {}, 'drain');
    expect(log.messages('info')).toEqual([
      'connecting',
      'registered; waiting for jobs',
      'draining: taking no more jobs',
      'drained and left',
    ]);
    expect(log.lines.filter(({ level }) => level !== 'info')).toEqual([
      {
        level: 'warn',
        message: 'an attempt of failing failed',
        fields: {
          ...{ job: 'job-1', tenant: 'default', task: 'failing', queue: 'default', attempt: 1 },
          ...{ code: 'LUCKLESS', error: 'no luck' },
        },
      },
      {
        level: 'debug',
        message: 'where that error came from',
        fields: { job: 'job-1', attempt: 1, stack: expect.stringContaining('worker-log.test') },
      },
    ]);
  });

  it('says nothing of attempts that succeed, and takes false for no log at all', async () => {
    const log = new MemoryLog();
    await resultIn([fine], { log });
    expect(log.lines.filter(({ level }) => level !== 'info')).toEqual([]);
    expect(await resultIn([failing], { log: false })).toMatchObject({ outcome: 'failed' });
  });

  it('stays short when thousands fail', async () => {
    const log = new MemoryLog();
    const scheduler = new MemoryScheduler();
    const jobs = Array.from({ length: 2_000 }, () => scheduler.submit('failing'));
    const worker = new WorkerRuntime({
      gateway: scheduler,
      runners: [new HandlerRunner([failing])],
      options: { log, slots: 100 },
    });
    await worker.start();
    for (const job of jobs) await scheduler.resultOf(job);
    await worker.stop();
    const warned = log.lines.filter(({ level }) => level === 'warn');
    const listed = warned.filter(({ message }) => message === 'an attempt of failing failed').length;
    const more = warned.map(({ fields }) => (fields.count as number | undefined) ?? 0);
    expect(listed).toBeLessThan(500);
    expect(listed + more.reduce((sum, count) => sum + count, 0)).toBe(2_000);
  });

  it('may be a logger of pino', async () => {
    const written: string[] = [];
    await resultIn([failing], { log: pino({ level: 'warn' }, { write: (line) => void written.push(line) }) });
    expect(written.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, code: 'LUCKLESS' }]);
  });

  it('may be broken without any harm', async () => {
    const broken = { debug: fail, info: fail, warn: fail, error: () => Promise.reject(new Error('no disk')) };
    expect(await resultIn([failing], { log: broken as unknown as Log })).toMatchObject({
      outcome: 'failed',
      error: { code: 'LUCKLESS' },
    });
    expect(await resultIn([fine], { log: broken as unknown as Log })).toMatchObject({ outcome: 'succeeded' });
  });

  it('must be a logger', () => {
    const runners = [new HandlerRunner([fine])];
    const make = (options: object) => () =>
      new WorkerRuntime({ gateway: new MemoryScheduler(), runners, options: options as WorkerOptions });
    expect(make({ log: { info: fail } })).toThrow(/log: expected a logger/);
    expect(make({ log: true })).toThrow(/log: expected a logger/);
    expect(make({ middleware: [null] })).toThrow(/middleware: expected a list of functions/);
  });
});

function fail(): never {
  throw new Error('a hook or logger of the program is broken');
}

describe('the hooks of a worker', () => {
  function recording() {
    const attempts: EndedAttempt[] = [];
    const errors: [unknown, EndedAttempt][] = [];
    const ended: unknown[][] = [];
    const events = {
      onAttempt: (attempt: EndedAttempt) => void attempts.push(attempt),
      onError: (thrown: unknown, attempt: EndedAttempt) => void errors.push([thrown, attempt]),
      onJobEnded: (...all: unknown[]) => void ended.push(all.slice(1)),
    };
    return { attempts, errors, ended, events };
  }

  it('are told of attempts that succeed, and of errors as they were thrown', async () => {
    const good = recording();
    await resultIn([fine], { events: good.events });
    expect(good.attempts).toEqual([
      {
        ...{ jobId: 'job-1', tenant: 'default', task: 'fine', queue: 'default', attempt: 1, fence: 1 },
        ...{ outcome: 'succeeded', error: null, durationMs: expect.any(Number) },
      },
    ]);
    expect([good.errors, good.ended]).toEqual([[], [['succeeded', null]]]);
    const bad = recording();
    const thrown = Object.assign(new Error('odd'), { extra: { kept: true } });
    await resultIn([task('odd', () => Promise.reject(thrown))], { events: bad.events });
    expect(bad.errors).toEqual([[thrown, expect.objectContaining({ outcome: 'failed' })]]);
    expect(bad.errors[0]![0]).toBe(thrown);
    expect(bad.ended).toEqual([['failed', expect.objectContaining({ message: 'odd' })]]);
    const unfit = recording();
    await resultIn([task('unfit', () => 1n)], { events: unfit.events });
    expect(unfit.errors[0]![0]).toMatchObject({ code: 'RESULT_NOT_JSON' });
  });

  it('see one code for a timeout, the one that is reported and logged', async () => {
    const { errors, attempts, events } = recording();
    const log = new MemoryLog();
    const result = await resultIn([deaf], { events, log, stopGraceMs: 10 }, { timeoutMs: 20 });
    expect(result).toMatchObject({ outcome: 'timed-out', error: { code: 'TIMED_OUT' } });
    expect(errors).toMatchObject([[{ code: 'TIMED_OUT' }, { outcome: 'timed-out' }]]);
    expect(attempts).toMatchObject([{ outcome: 'timed-out', error: { code: 'TIMED_OUT' } }]);
    expect(log.lines.find(({ level }) => level === 'warn')).toMatchObject({
      message: 'an attempt of deaf timed out',
      fields: { code: 'TIMED_OUT' },
    });
  });

  it('have no effect on the attempt when they throw or reject, and the log tells of it', async () => {
    const rejecting = () => Promise.reject(new Error('rejected')) as unknown as undefined;
    const hooks = [
      'onRegistered',
      'onJobStarted',
      'onJobEnded',
      'onAttempt',
      'onError',
      'onJobReported',
      'onWarning',
    ];
    for (const broken of [fail, rejecting]) {
      const events = Object.fromEntries(hooks.map((hook) => [hook, broken]));
      const log = new MemoryLog();
      expect(await resultIn([fine], { events, log })).toMatchObject({ outcome: 'succeeded', result: 'done' });
      expect(await resultIn([failing], { events, log })).toMatchObject({ error: { code: 'LUCKLESS' } });
      expect(log.messages('warn')).toContain('a hook of the worker failed');
    }
  });
});

describe('the middleware of a worker', () => {
  it('surrounds every handler, and its outcome is the outcome of the attempt', async () => {
    const seen: unknown[] = [];
    const middleware: WorkerOptions['middleware'] = [
      async (context, next) => {
        seen.push([context.task, context.queue, context.payload]);
        try {
          return { wrapped: await next() };
        } catch (error) {
          throw new PermanentError(`wrapped: ${(error as Error).message}`, { code: 'WRAPPED' });
        }
      },
    ];
    expect(await resultIn([fine], { middleware })).toMatchObject({ result: { wrapped: 'done' } });
    expect(await resultIn([failing], { middleware })).toMatchObject({
      outcome: 'failed',
      error: { code: 'WRAPPED', message: 'wrapped: no luck' },
      retryable: false,
    });
    expect(seen).toEqual([
      ['fine', 'default', 'x'],
      ['failing', 'default', 'x'],
    ]);
  });

  it('that forgets to wait reports no success too early, and the log says which one it is', async () => {
    const log = new MemoryLog();
    let ended = false;
    const slow = task('slow', async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      ended = true;
      throw new Error('late');
    });
    const forgetful: NonNullable<WorkerOptions['middleware']>[number] = (_, next) => void next();
    const result = await resultIn([slow], { middleware: [forgetful], log });
    expect(ended).toBe(true);
    expect(result).toMatchObject({ outcome: 'failed', error: { message: 'late' } });
    expect(log.messages('warn')).toContainEqual(
      expect.stringContaining('The middleware forgetful did not wait'),
    );
  });

  it('is told to stop like its handler, and one that hangs is abandoned', async () => {
    const hanging: WorkerOptions = { middleware: [() => new Promise(() => undefined)], stopGraceMs: 10 };
    expect(await resultIn([fine], hanging, { timeoutMs: 20 })).toMatchObject({
      outcome: 'timed-out',
      error: { code: 'TIMED_OUT' },
    });
  });
});
